#pragma once

#include "core/cpu/simd.h"

#if defined(LONGHAND_ISA_IS_AVX512BF16) || defined(LONGHAND_ISA_IS_AMX)
#define LONGHAND_HAS_BF16_PAIRS
#endif

/// Converts f32 operands of products to bf16. Values are rounded, or split into two bf16 parts. Two
/// bf16 values can be packed in a 32-bit word.
namespace longhand::cpu::LONGHAND_ISA {

/// f32 values split into two bf16 values: the rounded value and the remainder. Each bf16 value is
/// in the upper half of a 32-bit lane.
struct SplitLanes {
  Vec high, low;
};
/// Rounds to bf16, ties to even. Processors that multiply bf16 numbers in hardware also have an
/// instruction for this conversion. Only on these processors, subnormals are treated as 0, both by
/// the conversion and by the products.
[[gnu::always_inline]] inline HalfLanes to_halves(Vec x) {
#if defined(LONGHAND_HAS_BF16_PAIRS)
  return reinterpret_cast<HalfLanes>(_mm512_cvtneps_pbh(x.v));
#else
  return narrow(x);
#endif
}
[[gnu::always_inline]] inline Vec rounded(Vec x) { return widen(to_halves(x)); }

[[gnu::always_inline]] inline SplitLanes split(Vec x) {
  const Vec high = rounded(x);
  const Vec rest = x - high;
  // If x is infinite or rounds to infinity, `rest` is NaN or infinite. The low part is then 0.
  const Vec finite = select(abs(high) < Vec(__builtin_inff()), rest, Vec(0.0));
  return {high, rounded(finite)};
}

[[gnu::always_inline]] inline void put_halves(void* to, Vec x) {
  const HalfLanes half = to_halves(x);
  __builtin_memcpy(to, &half, sizeof half);
}

/// Packs the bf16 values of two rows into 32-bit words: those of x into the lower halves, and those
/// of `next` into the upper halves.
[[gnu::always_inline]] inline WordLanes pairs_of(Vec x, Vec next) {
  const WordLanes low = reinterpret_cast<WordLanes>(x.v),
                  high = reinterpret_cast<WordLanes>(next.v);
  return low >> 16 | (high & 0xffff0000u);
}

}  // namespace longhand::cpu::LONGHAND_ISA
