#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/tally.h"

/// Statistics of means (docs/math/statistics.md). For shares see wilson() in tasks/tally.h.
namespace longhand::tasks {

/// Count, mean and spread of the values added so far, by Welford's recurrence.
struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of (x - mean)^2

  void add(double value);
  void add(const Moments& other);  // adds the values of another one
  double variance() const;         // squares / (count - 1); 0 for fewer than two values
  double deviation() const;
};

/// The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].
double incomplete_beta(double a, double b, double x);

/// P(|T| >= |t|) of Student's distribution; degrees of freedom > 0, not necessarily integers.
double student_two_sided(double t, double freedom);
/// The t with P(|T| >= t) = p, for 0 < p <= 1.
double student_quantile(double p, double freedom);

/// The 95% interval of a mean, mean +- t s / sqrt(n); empty for fewer than two values.
std::optional<Interval> mean_interval(const Moments& values);

/// Welch's test that two means are equal, with unequal variances:
///   t = (mean_a - mean_b) / sqrt(s_a^2 / n_a + s_b^2 / n_b)
/// with the degrees of freedom of Welch and Satterthwaite, and the two-sided p.
struct Welch {
  double t = 0, freedom = 0, p = 1;
};
/// Empty if either has fewer than two values, or if both have no variance.
std::optional<Welch> welch(const Moments& a, const Moments& b);

/// e(n) = a n^-b, fitted by least squares of ln e on ln n.
struct PowerLaw {
  std::int64_t points = 0;
  double log_factor = 0;  // ln of the factor a
  double exponent = 0;    // b
  Interval exponent_between =
      {};  // 95% interval, by Student's t with points - 2 degrees of freedom
  // s, the deviation of ln e from the line: s^2 = sum of squares / (points - 2)
  double deviation = 0;
  double centre = 0;  // the mean of ln n
  double spread = 0;  // sum of (ln n - centre)^2
  /// p of the F test that the means of ln e at each n lie on one line, given the differences among
  /// points with equal n. Empty if no points have equal n, or with fewer than three n.
  std::optional<double> straight = {};

  double at(double n) const;  // the predicted error a n^-b
  /// The 95% prediction interval of another e,
  ///   ln at(n) +- t s sqrt(1 + 1 / points + (ln n - centre)^2 / spread)
  Interval next(double n) const;
  // otherwise the slope may be zero or upward
  bool falls() const { return exponent_between.low > 0; }
};
struct SizeAndError {
  double n = 0, e = 0;  // both positive
};
/// Empty for fewer than three points, or if all have the same n.
std::optional<PowerLaw> power_law(std::span<const SizeAndError> points);

/// The error of `wrong` out of `trials`, safe for a logarithm: (wrong + 1/2) / (trials + 1), never
/// 0 or 1.
double smoothed_error(double wrong, double trials);

}  // namespace longhand::tasks
