#include "core/cpu/gemm/panels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// The matrix product kernels of all instruction sets up to avx512. Each stronger instruction set
/// copies the table of the next weaker set and replaces some of its kernels: see paired.simd.cpp
/// and tiles.simd.cpp.
template <>
const GemmKernels& kernels<GemmKernels, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA;
  static const GemmKernels table{.format = {&plain_format, &plain_format, &rounded_format},
                                 .small = {&plain_format, &plain_format, &rounded_format},
                                 .dots = dots,
                                 .rows_of_a = rows_of_a,
                                 .epilogue = finish,
                                 .sum_parts = sum_parts};
  return table;
}

}  // namespace longhand::cpu
