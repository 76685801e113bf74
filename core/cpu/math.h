#pragma once

#include "core/cpu/simd.h"
#include "core/elementary.h"

/// exp, log, log1p, tanh, erf, sigmoid, sine and cosine of vectors, for all inputs including
/// subnormals. The maximum errors, in units in the last place of f32, are 1.5 for exp, log and
/// log1p, 2.1 for erf, and 2.5 for tanh, sigmoid, sine and cosine. tests/vector_math_test.cpp
/// checks these limits for every instruction set. For NaN, the result is NaN.
///
/// The coefficients are minimax fits of the relative error of the result (Remez exchange in
/// 40-digit arithmetic, then rounded to f32).
namespace longhand::cpu::LONGHAND_ISA {

inline constexpr double log2_e = 1.44269504088896340736;
/// ln 2 with only 15 significant bits, so that n * ln2_high is exact in f32 for integers |n| < 512.
inline constexpr double ln2_high = 0.693145751953125;
inline constexpr double ln2_low = 0.69314718055994530942 - ln2_high;

/// The polynomial c0 + c1 x + c2 x^2 + ..., where c1, c2, ... are the arguments `rest`.
template <class... Coefficients>
[[gnu::always_inline]] inline Vec polynomial(Vec x, double c0, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return Vec(c0);
  } else {
    return fma(polynomial(x, rest...), x, Vec(c0));
  }
}

/// Returns p 2^n, rounded once, for an integer n in [-300, 300]. n_int is the same integer as n.
[[gnu::always_inline]] inline Vec scale_by_power(Vec p, Vec n, IntVec n_int) {
#if defined(LONGHAND_ISA_IS_PORTABLE) || defined(LONGHAND_ISA_IS_FUSED) || \
    defined(LONGHAND_ISA_IS_NEON) || defined(LONGHAND_ISA_IS_SIMD128) ||   \
    defined(LONGHAND_ISA_IS_AVX2)
  (void)n;
  // p is multiplied by 2^half and then by 2^(n - half). Both powers are normal numbers, and the
  // first product is exact.
  const IntVec half = n_int >> 1;
  const Vec a = from_bits((half + IntVec(127)) << 23);
  const Vec b = from_bits((n_int - half + IntVec(127)) << 23);
  return p * a * b;
#else
  (void)n_int;
  return reinterpret_cast<FloatLanes>(_mm512_scalef_ps(p.v, n.v));
#endif
}

/// e^x = 2^n (1 + p), where n is the integer nearest to x / ln 2, so |ln(1 + p)| <= ln 2 / 2.
struct ReducedExp {
  Vec n, p;
  IntVec n_int;
};
/// Computes n and p such that e^x = 2^n (1 + p), where |ln(1 + p)| <= ln 2 / 2. x is NaN or in
/// [-105, 89].
[[gnu::always_inline]] inline ReducedExp reduce_exp(Vec x) {
  // Adding 1.5 * 2^23 rounds x / ln 2 to an integer, which is then in the low bits of the sum.
  const Vec magic(12582912.0);
  const Vec shifted = fma(x, Vec(log2_e), magic);
  const Vec n = shifted - magic;
  const Vec r = fma(n, Vec(-ln2_low), fma(n, Vec(-ln2_high), x));
  const Vec q = polynomial(r, 0.5, 0.166665211, 0.041668389, 0.00836874545, 0.00138145359);
  return {.n = n, .p = fma(r * r, q, r), .n_int = bits(shifted) - bits(magic)};
}

[[gnu::always_inline]] inline Vec exp(Vec x) {
  // For x outside the bounds -105 and 89, the result is 0 or infinity. The order of the arguments
  // makes min and max preserve NaN.
  const ReducedExp e = reduce_exp(min(Vec(89.0), max(Vec(-105.0), x)));
  return scale_by_power(e.p + Vec(1.0), e.n, e.n_int);
}

/// Returns e^x - 1 for x in [-80, 80] or NaN. With e^x = 2^n (1 + p) from reduce_exp(), the result
/// is 2^n p + (2^n - 1). For small x, n is 0 and the result is p.
[[gnu::always_inline]] inline Vec exp_minus_1(Vec x) {
  const ReducedExp e = reduce_exp(x);
  const Vec power = from_bits((e.n_int + IntVec(127)) << 23);
  return fma(e.p, power, power - Vec(1.0));
}

/// ln x = e ln 2 + ln(1 + f), where x = 2^e (1 + f) and 1 + f is in [sqrt(1/2), sqrt 2).
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

/// Returns ln(1 + x) for x >= 0. It is computed as ln u + (x - (u - 1)) / u, where u is 1 + x
/// rounded to f32.
[[gnu::always_inline]] inline Vec log1p(Vec x) {
  const Vec u = Vec(1.0) + x;
  const Vec lost = x - (u - Vec(1.0));
  return select(x < Vec(0x1p24), log(u) + lost / u, log(x));
}

/// tanh |x| = t / (t + 2), where t = e^(2|x|) - 1. For |x| >= 10 the result is 1.
[[gnu::always_inline]] inline Vec tanh(Vec x) {
  const Vec size = abs(x);
  const Vec t = exp_minus_1(min(Vec(20.0), size + size));
  return copysign(t / (t + Vec(2.0)), x);
}

/// erf |x| = 1 - e^(-|x| + |x| R(|x|)). The polynomial R is chosen such that the exponent is ln(1 -
/// erf |x|). For |x| >= 4, the result is 1.
[[gnu::always_inline]] inline Vec erf(Vec x) {
  const Vec size = min(Vec(4.0), abs(x));
  const Vec r =
      polynomial(size, -0.128379172, -0.636619382, -0.102777831, 0.019153066, 0.000160391646,
                 -0.00166702212, 0.000632833515, -0.000117640237, 9.2561404e-06);
  return copysign(exp_minus_1(fma(size, r, -size)), x);
}

/// 1 / (1 + e^-x). It is computed from e^-|x|, so that nothing overflows and small results keep
/// their precision.
[[gnu::always_inline]] inline Vec sigmoid(Vec x) {
  const Vec e = exp(-abs(x));
  return select(x < Vec(0.0), e, Vec(1.0)) / (Vec(1.0) + e);
}

/// sin x and cos x. Let n be the integer nearest to x / (pi/2), and r = x - n pi/2. n mod 4
/// determines whether sin r or cos r is used, and with which sign. To compute r, pi/2 is split into
/// four parts, and n times each part is subtracted from x. Three of the parts are so short that
/// these products are exact. For |x| >= 2^14, the functions of f64 are used.
[[gnu::always_inline]] inline void sine_cosine(Vec x, Vec& sine, Vec& cosine) {
  const Vec magic(12582912.0);  // adding 1.5 * 2^23 rounds to an integer, as in reduce_exp()
  const Vec shifted = fma(x, Vec(0.63661977236758134308), magic);
  const Vec n = shifted - magic;
  Vec r = fma(n, Vec(-0x1.92p0), x);
  r = fma(n, Vec(-0x1.f8p-12), r);
  r = fma(n, Vec(-0x1.aap-19), r);
  r = fma(n, Vec(-0x1.10b462p-30), r);
  const Vec r2 = r * r;
  const Vec s = fma(r * r2, polynomial(r2, -0.166666552, 0.0083321603, -0.000195151966), r);
  const Vec c = fma(r2 * r2, polynomial(r2, 0.0416666456, -0.00138873153, 2.44330586e-05),
                    fma(Vec(-0.5), r2, Vec(1.0)));
  const IntVec quadrant = bits(shifted) - bits(magic);
  const Mask odd = (quadrant & IntVec(1)) == IntVec(1);
  const auto negated_by = [](Vec a, IntVec second_bit) {
    return from_bits(bits(a) ^ ((second_bit & IntVec(2)) << 30));
  };
  sine = negated_by(select(odd, c, s), quadrant);
  cosine = negated_by(select(odd, s, c), quadrant + IntVec(1));
  if (const Mask far = ~(abs(x) < Vec(16384.0)); any(far)) {
    for (int i = 0; i < lanes; ++i) {
      if (far.v[i] == 0) continue;
      sine.v[i] = static_cast<float>(elementary::sin(static_cast<double>(x.v[i])));
      cosine.v[i] = static_cast<float>(elementary::cos(static_cast<double>(x.v[i])));
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA
