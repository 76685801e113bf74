#pragma once

#include "core/cpu/gemm/kernels.h"
#include "core/cpu/halves.h"
#include "core/cpu/simd.h"

/// The formats of packed operands for the instruction sets up to avx512, and the kernels that do
/// not read packed operands. Only the *.simd.cpp files of this folder include this header.
namespace longhand::cpu::LONGHAND_ISA {

extern const PanelFormat plain_format;    // packed operands are f32
extern const PanelFormat rounded_format;  // packed operands are f32, with values rounded to bf16

void dots(const Dots& d);
void rows_of_a(const PackJob& job, bool round);
void finish(const EpilogueBlock& e);
void sum_parts(const float* parts, std::int64_t stride, std::int64_t count, float* out,
               std::int64_t length);

/// The size of the tile of c that is kept in registers: mr rows of nr columns, which are two
/// vectors per row. The tile needs 2 mr vector registers for the sums, 2 for a row of B, and 1 for
/// an element of A. These are 31 of the 32 registers of AVX-512 and NEON (mr = 14), and 15 of the
/// 16 registers of AVX2 and SSE2 (mr = 6). Each step along k needs mr + 2 loads for 2 mr
/// multiply-adds. A multiply-add takes 4 cycles, and two are started per cycle. At least 8
/// independent sums are needed to hide this latency, and the tile has 28 or 12.
inline constexpr int mr = registers == 32 ? 14 : 6;
inline constexpr int nr = 2 * lanes;

}  // namespace longhand::cpu::LONGHAND_ISA
