#include "tasks/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/error.h"

namespace longhand::tasks {
namespace {

/// Coefficient c_n, for n > 0, of the continued fraction of the incomplete beta function I_x(a, b).
/// With m = n / 2 rounded down, it is
///   m (b - m) x / ((a + 2m - 1) (a + 2m)) if n is even;
///   -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1)) if n is odd.
double coefficient(double a, double b, double x, int n) {
  const double m = std::floor(n / 2.0);
  if (n % 2 == 0) return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
  return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
}

/// Computes 1 / (1 + c_1 / (1 + c_2 / (1 + ...))) with c_n = coefficient(a, b, x, n), until a
/// further term changes nothing. The approximations are quotients A_n / B_n. A_n and B_n could
/// overflow, so only A_n / A_n-1 and B_n / B_n-1 are computed.
double continued_fraction(double a, double b, double x) {
  constexpr int most_terms = 100'000;
  constexpr double tiny = std::numeric_limits<double>::min();
  const auto nonzero = [](double value) { return value == 0 ? tiny : value; };
  double value = 1, numerators = 1;
  // The quotient B_n / B_n-1. B_0 is 1 and B_-1 is 0, so its initial value is infinite.
  double denominators = std::numeric_limits<double>::infinity();
  for (int n = 1; n < most_terms; ++n) {
    const double c = coefficient(a, b, x, n);
    numerators = nonzero(1 + c / numerators);
    denominators = nonzero(1 + c / denominators);
    const double factor = numerators / denominators;
    value *= factor;
    if (std::abs(factor - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return 1 / value;
}

}  // namespace

void Moments::add(double value) {
  ++count;
  const double before = value - mean;
  mean += before / static_cast<double>(count);
  squares += before * (value - mean);
}

void Moments::add(const Moments& other) {
  if (other.count == 0) return;
  const double apart = other.mean - mean;
  const auto own = static_cast<double>(count), theirs = static_cast<double>(other.count);
  count += other.count;
  mean += apart * theirs / (own + theirs);
  squares += other.squares + apart * apart * own * theirs / (own + theirs);
}

double Moments::variance() const {
  return count < 2 ? 0 : squares / static_cast<double>(count - 1);
}

double Moments::deviation() const { return std::sqrt(variance()); }

double incomplete_beta(double a, double b, double x) {
  LONGHAND_CHECK(a > 0 && b > 0 && x >= 0 && x <= 1,
                 "incomplete_beta: expected `a` and `b` above 0 and `x` from 0 to 1, got ", a, ", ",
                 b, ", ", x);
  if (x == 0 || x == 1) return x;
  // The continued fraction of the incomplete beta function I_x(a, b) converges fast if x is at most
  // (a + 1) / (a + b + 2). For larger x, the fraction of I_{1-x}(b, a) converges fast, and
  // I_x(a, b) = 1 - I_{1-x}(b, a).
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double log_factor =
      a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  return std::exp(log_factor) / a * continued_fraction(a, b, x);
}

double student_two_sided(double t, double freedom) {
  const double share = freedom / (freedom + t * t);
  if (std::isinf(t)) return 0;
  return incomplete_beta(freedom / 2, 0.5, share);
}

double student_quantile(double p, double freedom) {
  LONGHAND_CHECK(p > 0 && p <= 1, "student_quantile: expected `p` above 0 and at most 1, got ", p);
  double low = 0, high = 1;
  while (student_two_sided(high, freedom) > p) high *= 2;
  for (int halving = 0; halving < 100 && low < high; ++halving) {
    const double middle = low + (high - low) / 2;
    (student_two_sided(middle, freedom) > p ? low : high) = middle;
  }
  return high;
}

std::optional<Interval> mean_interval(const Moments& values) {
  if (values.count < 2) return std::nullopt;
  const auto count = static_cast<double>(values.count);
  const double half = student_quantile(0.05, count - 1) * values.deviation() / std::sqrt(count);
  return Interval{values.mean - half, values.mean + half};
}

std::optional<Welch> welch(const Moments& a, const Moments& b) {
  if (a.count < 2 || b.count < 2) return std::nullopt;
  const auto na = static_cast<double>(a.count), nb = static_cast<double>(b.count);
  const double va = a.variance() / na, vb = b.variance() / nb;
  if (va + vb == 0) return std::nullopt;
  Welch result{.t = (a.mean - b.mean) / std::sqrt(va + vb),
               .freedom = (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1))};
  result.p = student_two_sided(result.t, result.freedom);
  return result;
}

double PowerLaw::at(double n) const { return std::exp(log_factor - exponent * std::log(n)); }

Interval PowerLaw::next(double n) const {
  const auto count = static_cast<double>(points);
  const double away = std::log(n) - centre;
  const double half = student_quantile(0.05, count - 2) * deviation *
                      std::sqrt(1 + 1 / count + away * away / spread);
  return {at(n) * std::exp(-half), at(n) * std::exp(half)};
}

std::optional<PowerLaw> power_law(std::span<const SizeAndError> points) {
  Moments x, y;
  for (const auto& [n, e] : points) {
    LONGHAND_CHECK(n > 0 && e > 0 && std::isfinite(n) && std::isfinite(e),
                   "power_law: expected positive numbers, got ", n, ", ", e);
    x.add(std::log(n));
    y.add(std::log(e));
  }
  const bool one_size =
      std::ranges::all_of(points, [&](const SizeAndError& p) { return p.n == points[0].n; });
  if (points.size() < 3 || one_size) return std::nullopt;
  double products = 0, squares = 0;
  for (const auto& [n, e] : points) products += (std::log(n) - x.mean) * (std::log(e) - y.mean);
  const double slope = products / x.squares;
  for (const auto& [n, e] : points) {
    const double off = std::log(e) - y.mean - slope * (std::log(n) - x.mean);
    squares += off * off;
  }
  const auto freedom = static_cast<double>(points.size() - 2);
  PowerLaw law{.points = x.count,
               .log_factor = y.mean - slope * x.mean,
               .exponent = -slope,
               .exponent_between = {},
               .deviation = std::sqrt(squares / freedom),
               .centre = x.mean,
               .spread = x.squares};
  const double half = student_quantile(0.05, freedom) * law.deviation / std::sqrt(law.spread);
  law.exponent_between = {law.exponent - half, law.exponent + half};

  std::map<double, Moments> at;  // for each size n, the moments of the logarithms of its errors
  for (const auto& [n, e] : points) at[n].add(std::log(e));
  double within = 0;
  for (const auto& [n, errors] : at) within += errors.squares;
  const auto repeats = static_cast<double>(points.size() - at.size());
  if (repeats > 0 && at.size() > 2) {
    const auto bends = static_cast<double>(at.size() - 2);
    const double bent = std::max(0.0, squares - within);
    // F test of the hypothesis that the mean of ln(error) at each size lies on the fitted line.
    // `within`, with `repeats` degrees of freedom, is the sum of squared deviations of the points
    // from the mean at their size. `bent`, with `bends` degrees of freedom, is the sum of squared
    // deviations of these means from the line. With F = (bent / bends) / (within / repeats), the
    // argument of the incomplete beta function is share = repeats / (repeats + bends F).
    const double share = within + bent > 0 ? within / (within + bent) : 1;
    law.straight = incomplete_beta(repeats / 2, bends / 2, share);
  }
  return law;
}

double smoothed_error(double wrong, double trials) { return (wrong + 0.5) / (trials + 1); }

}  // namespace longhand::tasks
