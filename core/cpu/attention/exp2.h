#pragma once

#include "core/cpu/math.h"

namespace longhand::cpu::LONGHAND_ISA {

/// Returns 2^x with an error of at most 2 units in the last place for x <= 126. The result is 0 if
/// x < -150, and NaN if x is NaN. Softmax uses powers of two to save a multiplication per score,
/// because the scale of the queries can include the factor log2(e). With the integer n nearest to
/// x, 2^x = 2^n 2^(x - n). The polynomial for 2^(x - n) minimizes the maximum relative error.
[[gnu::always_inline]] inline Vec exp2(Vec x) {
  const Vec near = max(Vec(-160.0f), x);
  // Adding 1.5 * 2^23 rounds x to an integer. The low bits of the sum contain this integer.
  const Vec magic(12582912.0f);
  const Vec shifted = near + magic;
  const Vec n = shifted - magic;
  const Vec p = polynomial(near - n, 1.0, 0.6931469670652649, 0.2402211972396918,
                           0.05550713272875391, 0.009675541331021392, 0.0013276472167819944);
  return scale_by_power(p, n, bits(shifted) - bits(magic));
}

namespace attention {

/// Like exp2, but returns 0 for x < -126, because a subnormal result would cost a hundred cycles.
[[gnu::always_inline]] inline Vec exp2_or_zero(Vec x) {
  const Vec lowest(-126.0f);
  return select(x < lowest, Vec(0.0f), exp2(max(lowest, x)));
}
/// Stick-breaking distributes the weight 1 of each row over the keys. If the weight that is left
/// becomes smaller than this number, this number is used instead. Products with a smaller number
/// could be subnormal, and subnormal numbers are slow.
inline constexpr float least_left = 0x1p-90f;

inline constexpr float log2_of_e = 1.44269504088896340736f;
inline constexpr float ln_of_2 = 0.69314718055994530942f;

}  // namespace attention
}  // namespace longhand::cpu::LONGHAND_ISA
