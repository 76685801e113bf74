#pragma once

#include "core/cpu/gemm/kernels.h"
#include "core/cpu/halves.h"
#include "core/cpu/simd.h"

/// The formats of the instruction sets up to avx512, and functions for all formats. Only the
/// *.simd.cpp files of this folder include this header.
namespace longhand::cpu::LONGHAND_ISA {

extern const PanelFormat plain_format;    // f32 units
extern const PanelFormat rounded_format;  // f32 units, with values rounded to bf16

void dots(const Dots& d);
void rows_of_a(const PackJob& job, bool round);
void finish(const EpilogueBlock& e);
void sum_parts(const float* parts, std::int64_t stride, std::int64_t count, float* out,
               std::int64_t length);

/// The tile of c that is kept in registers: mr rows of nr columns. It uses mr * nr / lanes vector
/// registers for the sums, nr / lanes for a row of B, and one for an element of A. AVX-512 and NEON
/// have 32 registers, of which 14 x 2 + 2 + 1 are used. AVX2 and SSE2 have 16 registers, of which 6
/// x 2 + 2 + 1 are used. Each step along k loads mr + nr / lanes values for mr * nr / lanes
/// multiply-adds. A multiply-add takes 4 cycles, and two are started per cycle. There are enough
/// independent sums to hide this latency.
inline constexpr int mr = registers == 32 ? 14 : 6;
inline constexpr int nr = 2 * lanes;

}  // namespace longhand::cpu::LONGHAND_ISA
