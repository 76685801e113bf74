#pragma once

#include "core/cpu/simd.h"

/// exp, log, log1p, tanh, erf and sigmoid on vectors, each within 1.5 units in the last place of
/// f32 (sigmoid 2.5) over the whole range, subnormals included; tests/vector_math_test.cpp states
/// the bound of each and holds every instruction set to it. NaN stays NaN.
///
/// The coefficients are minimax fits in the relative error of the result (Remez exchange in
/// 40-digit arithmetic, then rounded to f32).
namespace longhand::cpu::LONGHAND_ISA {

inline constexpr double log2_e = 1.44269504088896340736;
inline constexpr double ln2_high = 0.693145751953125;  // 15 bits: n ln2_high is exact for |n| < 512
inline constexpr double ln2_low = 0.69314718055994530942 - ln2_high;

/// c0 + c1 x + c2 x^2 + ...
template <class... Coefficients>
[[gnu::always_inline]] inline Vec polynomial(Vec x, double c0, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return Vec(c0);
  } else {
    return fma(polynomial(x, rest...), x, Vec(c0));
  }
}

/// p 2^n for integral n in [-300, 300], rounded once.
[[gnu::always_inline]] inline Vec scale_by_power(Vec p, Vec n, IntVec n_int) {
#if defined(LONGHAND_ISA_IS_PORTABLE) || defined(LONGHAND_ISA_IS_AVX2)
  (void)n;
  const IntVec half = n_int >> 1;  // both factors normal, and the first product exact
  const Vec a = from_bits((half + IntVec(127)) << 23);
  const Vec b = from_bits((n_int - half + IntVec(127)) << 23);
  return p * a * b;
#else
  (void)n_int;
  return reinterpret_cast<FloatLanes>(_mm512_scalef_ps(p.v, n.v));
#endif
}

/// e^x = 2^n e^r with n the integer nearest x / ln 2, so |r| <= ln 2 / 2.
[[gnu::always_inline]] inline Vec exp(Vec x) {
  const Vec near = min(Vec(89.0), max(Vec(-105.0), x));  // beyond: infinity, 0; this way NaN stays
  const Vec magic(12582912.0);  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const Vec shifted = fma(near, Vec(log2_e), magic);
  const Vec n = shifted - magic;
  const Vec r = fma(n, Vec(-ln2_low), fma(n, Vec(-ln2_high), near));
  const Vec p = polynomial(r, 0.5, 0.166665211, 0.041668389, 0.00836874545, 0.00138145359);
  return scale_by_power(fma(r * r, p, r) + Vec(1.0), n, bits(shifted) - bits(magic));
}

/// ln x = e ln 2 + ln(1 + f) with x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt 2).
[[gnu::always_inline]] inline Vec log(Vec x) {
  const Mask tiny = x < Vec(0x1p-126);
  const Vec normal = select(tiny, x * Vec(0x1p23), x);
  const IntVec sqrt_half(0x3f3504f3);
  const IntVec offset = bits(normal) - sqrt_half;
  const Vec e = to_float(offset >> 23) - select(tiny, Vec(23.0), Vec(0.0));
  const Vec f = from_bits((offset & IntVec(0x007fffff)) + sqrt_half) - Vec(1.0);
  const Vec q = polynomial(f, 0.333333135, -0.250000089, 0.200021192, -0.166679949, 0.142195538,
                           -0.124055997, 0.118881606, -0.11675588, 0.0674656704);
  const Vec f2 = f * f;
  const Vec tail = fma(e, Vec(ln2_low), f2 * f * q);
  const Vec result = fma(e, Vec(ln2_high), f - (Vec(0.5) * f2 - tail));
  const Vec infinity(__builtin_inff());
  const Vec special = select(x == Vec(0.0), -infinity, select(x == infinity, infinity, x - x));
  const Vec nan(__builtin_nanf(""));
  return select((x > Vec(0.0)) & (x < infinity), result, select(x < Vec(0.0), nan, special));
}

/// ln(1 + x) for x >= 0: with u = 1 + x rounded, ln u + (x - (u - 1)) / u.
[[gnu::always_inline]] inline Vec log1p(Vec x) {
  const Vec u = Vec(1.0) + x;
  const Vec lost = x - (u - Vec(1.0));
  return select(x < Vec(0x1p24), log(u) + lost / u, log(x));
}

/// x + x^3 P(x^2) near 0, else 1 - 2 / (e^2x + 1).
[[gnu::always_inline]] inline Vec tanh(Vec x) {
  const Vec z = x * x;
  const Vec p =
      polynomial(z, -0.333332807, 0.133314416, -0.0537397116, 0.0206390806, -0.00570497988);
  const Vec small = fma(z * p, x, x);
  const Vec size = abs(x);
  const Vec large = Vec(1.0) - Vec(2.0) / (exp(size + size) + Vec(1.0));
  return select(size < Vec(0.625), small, copysign(large, x));
}

/// x + x P(x^2) up to 1, else 1 - e^Q(|x|); beyond 4 the result is 1.
[[gnu::always_inline]] inline Vec erf(Vec x) {
  const Vec z = x * x;
  const Vec p = polynomial(z, 0.128379166, -0.37612626, 0.112835854, -0.026853811, 0.00518832775,
                           -0.000801019371, 7.85386219e-05);
  const Vec small = fma(p, x, x);
  const Vec size = min(Vec(4.0), abs(x));
  const Vec q = polynomial(size, -0.000341610255, -1.12708879, -0.638145387, -0.10310626,
                           0.0218378324, -0.00294760102, 0.000186373451);
  const Vec large = Vec(1.0) - exp(q);
  return select(size < Vec(1.0), small, copysign(large, x));
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows and small results keep their digits.
[[gnu::always_inline]] inline Vec sigmoid(Vec x) {
  const Vec e = exp(-abs(x));
  return select(x < Vec(0.0), e, Vec(1.0)) / (Vec(1.0) + e);
}

}  // namespace longhand::cpu::LONGHAND_ISA
