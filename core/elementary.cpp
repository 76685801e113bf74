#include "core/elementary.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace longhand::elementary {
namespace {

/// c_0 + c_1 x + c_2 x^2 + ...
template <std::size_t n>
double polynomial(const std::array<double, n>& c, double x) {
  double sum = c[n - 1];
  for (std::size_t i = n - 1; i > 0; --i) sum = sum * x + c[i - 1];
  return sum;
}

/// The numbers sign^i / (first + step i)! for i = 0, 1, ...
template <std::size_t n>
constexpr std::array<double, n> inverse_factorials(int first, int step, double sign) {
  std::array<double, n> c{};
  double factorial = 1, power = 1;
  int k = 1;
  for (std::size_t i = 0; i < n; ++i, power *= sign) {
    for (; k <= first + step * static_cast<int>(i); ++k) factorial *= k;
    c[i] = power / factorial;
  }
  return c;
}

/// ln 2 in two parts. The first part has 32 significant bits, so its product with an exponent of
/// f64 is exact.
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

/// e^r - 1 for |r| <= ln 2 / 2.
double exp_series(double r) {
  static constexpr auto c = inverse_factorials<14>(1, 1, 1.0);
  return r * polynomial(c, r);
}

/// x = n pi/2 + r with |r| <= pi/4; only the lowest two bits of n are needed.
struct Reduced {
  int quadrant;
  double r;
};
Reduced reduce(double x) {
  const double n = std::floor(x * (2 / std::numbers::pi) + 0.5);
  // pi/2 is the sum of four parts. The first three have at most 22 significant bits, so their
  // products with an integer |n| < 2^31 are exact.
  double r = x - n * 0x1.921fb8p0;
  r -= n * -0x1.5dde98p-23;
  r -= n * 0x1.846988p-48;
  r -= n * 0x1.8cc51701b839ap-72;
  return {static_cast<int>(static_cast<std::int64_t>(n) & 3), r};
}

/// Like reduce(), for 2^31 <= x < 2^128. x is m 2^e with an integer m. The number of quarter turns,
/// x (2/pi), is only needed modulo 4. The leading bits of 2/pi contribute multiples of 4, so they
/// are skipped. Only the next 128 bits of 2/pi are used.
Reduced reduce_large(double x) {
  static constexpr std::array<std::uint64_t, 5> two_over_pi{0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                                            0xdb6295993c439041, 0xfe5163abdebbc561,
                                                            0xb7246e3a424dd2e0};
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  const auto m = static_cast<std::uint64_t>(std::ldexp(significand, 53));
  const int skip = exponent - 53 - 2;  // number of leading bits of 2/pi that are not needed
  __extension__ using Wide = unsigned __int128;
  const auto word = [&](int bit) -> std::uint64_t {  // 64 bits of 2/pi, from this bit on
    if (bit < 0) return bit <= -64 ? 0 : two_over_pi[0] >> -bit;
    const auto at = static_cast<std::size_t>(bit / 64);
    const int rest = bit % 64;
    return two_over_pi[at] << rest | (rest == 0 ? 0 : two_over_pi[at + 1] >> (64 - rest));
  };
  // The number of quarter turns modulo 4, times 2^126.
  const Wide turns =
      (static_cast<Wide>(m * word(skip)) << 64) + static_cast<Wide>(m) * word(skip + 64);
  const Wide half = static_cast<Wide>(1) << 125;
  const auto n = static_cast<int>((turns + half) >> 126);
  const auto rest = static_cast<std::int64_t>((turns - (static_cast<Wide>(n) << 126)) >> 64);
  return {n, static_cast<double>(rest) * 0x1p-62 * (std::numbers::pi / 2)};
}

/// Returns sin(x + quarters * pi / 2).
double sine(double x, int quarters) {
  if (!(std::abs(x) < 0x1p128)) return x - x;
  Reduced reduced = std::abs(x) < 0x1p31 ? reduce(x) : reduce_large(std::abs(x));
  if (std::abs(x) >= 0x1p31 && x < 0) reduced = {-reduced.quadrant & 3, -reduced.r};
  static constexpr auto odd = inverse_factorials<11>(1, 2, -1.0);
  static constexpr auto even = inverse_factorials<11>(0, 2, -1.0);
  const int quadrant = (reduced.quadrant + quarters) & 3;
  const double r = reduced.r, square = r * r;
  const double value = quadrant % 2 == 0 ? r * polynomial(odd, square) : polynomial(even, square);
  return quadrant < 2 ? value : -value;
}

}  // namespace

double exp(double x) {
  if (x != x) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  const double n = std::floor(x * std::numbers::log2e + 0.5);
  const double r = (x - n * ln2_high) - n * ln2_low;
  return std::ldexp(1 + exp_series(r), static_cast<int>(n));
}

double expm1(double x) { return std::abs(x) < 0.34 ? exp_series(x) : exp(x) - 1; }

/// ln(2^e m) = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...), where s = (m - 1) / (m + 1).
double log(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : (x - x) / (x - x);
  if (x > std::numeric_limits<double>::max()) return x;
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --e;
  }
  const double f = m - 1, s = f / (m + 1), square = s * s;
  static constexpr std::array<double, 11> c{1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                            1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                            1.0 / 19, 1.0 / 21, 1.0 / 23};
  const double series = square * polynomial(c, square);
  // 2 s is computed as f - s f, where f = m - 1 is exact. The smaller terms are summed first, and
  // their sum is subtracted from f.
  return e * ln2_high + (f - (s * (f - 2 * series) - e * ln2_low));
}

double power(double base, double exponent) { return exp(exponent * log(base)); }

double erfc(double x) {
  const double size = std::abs(x), root = std::sqrt(std::numbers::pi);
  double value;  // erfc |x|
  if (size < 1.5) {
    double term = size, sum = size;
    for (int k = 1; k < 60; ++k) sum += term *= 2 * size * size / (2 * k + 1);
    value = 1 - 2 / root * exp(-size * size) * sum;
  } else {
    double fraction = size;
    for (int k = 100; k > 0; --k) fraction = size + 0.5 * k / fraction;
    value = exp(-size * size) / (root * fraction);
  }
  return x < 0 ? 2 - value : value;
}

double sin(double x) { return sine(x, 0); }
double cos(double x) { return sine(x, 1); }

}  // namespace longhand::elementary
