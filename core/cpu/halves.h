#pragma once

#include "core/cpu/simd.h"

#if defined(LONGHAND_ISA_IS_AVX512BF16) || defined(LONGHAND_ISA_IS_AMX)
#define LONGHAND_HAS_BF16_PAIRS
#endif

/// Converts f32 to bf16 for products: rounded, or split in two parts, and as pairs in 32-bit words.
namespace longhand::cpu::LONGHAND_ISA {

/// Lanes of bf16 values in the upper halves of words: the high part and the remainder.
struct SplitLanes {
  Vec high, low;
};
/// Rounds to bf16, to nearest even. The processor's instruction treats subnormals as zero, as its
/// products do.
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
  // For an infinity, or a value that rounds to one, the remainder would be NaN or infinite, so the
  // low part is 0.
  const Vec finite = select(abs(high) < Vec(__builtin_inff()), rest, Vec(0.0));
  return {high, rounded(finite)};
}

[[gnu::always_inline]] inline void put_halves(void* to, Vec x) {
  const HalfLanes half = to_halves(x);
  __builtin_memcpy(to, &half, sizeof half);
}

/// Interleaves two rows as pairs: x is the lower half of each word.
[[gnu::always_inline]] inline WordLanes pairs_of(Vec x, Vec next) {
  const WordLanes low = reinterpret_cast<WordLanes>(x.v),
                  high = reinterpret_cast<WordLanes>(next.v);
  return low >> 16 | (high & 0xffff0000u);
}

}  // namespace longhand::cpu::LONGHAND_ISA
