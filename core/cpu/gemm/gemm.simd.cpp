#include "core/cpu/gemm/panels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

template <>
const GemmKernels& kernels<GemmKernels, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA;
#if defined(LONGHAND_ISA_IS_AMX)
  static const GemmKernels table {
    .format = {&plain_format, &tile_two_format, &tile_one_format},
    .small = {&plain_format, &plain_format, &paired_format},
#else
#if defined(LONGHAND_HAS_BF16_PAIRS)
  const PanelFormat& bf16_format = paired_format;
#else
  const PanelFormat& bf16_format = rounded_format;
#endif
  static const GemmKernels table{.format = {&plain_format, &plain_format, &bf16_format},
                                 .small = {&plain_format, &plain_format, &bf16_format},
#endif
    .dots = dots, .rows_of_a = rows_of_a, .epilogue = finish, .sum_parts = sum_parts
  };
  return table;
}

}  // namespace longhand::cpu
