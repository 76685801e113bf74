#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/tally.h"

/// Statistics of means (docs/math/statistics.md). For proportions, such as the share of right
/// answers, see wilson() in tasks/tally.h.
namespace longhand::tasks {

/// Count, mean and spread of values, updated by Welford's recurrence.
struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of (value - mean)^2

  void add(double value);
  void add(const Moments& other);  // adds all values that were added to `other`
  double variance() const;         // squares / (count - 1); 0 for fewer than two values
  double deviation() const;
};

/// The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].
double incomplete_beta(double a, double b, double x);

/// The two-sided p value P(|T| >= |t|), where T has Student's t distribution with `freedom` degrees
/// of freedom. `freedom` must be positive, but need not be an integer.
double student_two_sided(double t, double freedom);
/// The t for which student_two_sided(t, freedom) is p, for 0 < p <= 1.
double student_quantile(double p, double freedom);

/// The 95% interval of the mean of n values, mean +- t s / sqrt(n), where s is the standard
/// deviation of the values and t = student_quantile(0.05, n - 1). No value if there are fewer than
/// two values.
std::optional<Interval> mean_interval(const Moments& values);

/// Welch's test of the hypothesis that the samples a and b, which have n_a and n_b values and the
/// standard deviations s_a and s_b, have equal means:
///   t = (mean_a - mean_b) / sqrt(s_a^2 / n_a + s_b^2 / n_b).
/// `freedom` is the number of degrees of freedom by Welch and Satterthwaite, and p is two-sided.
struct Welch {
  double t = 0, freedom = 0, p = 1;
};
/// Welch's test of a and b. No value if a or b has fewer than two values, or if both variances are
/// 0.
std::optional<Welch> welch(const Moments& a, const Moments& b);

/// A power law for the error e at size n: e = a n^-b, fitted by least squares of ln e on ln n.
struct PowerLaw {
  std::int64_t points = 0;
  double log_factor = 0;  // ln a, where a is the factor of the power law
  double exponent = 0;    // the exponent b of the power law a n^-b
  // The 95% interval of `exponent`, by Student's t with points - 2 degrees of freedom.
  Interval exponent_between = {};
  // Standard deviation of the residuals of ln e: sqrt((sum of their squares) / (points - 2)).
  double deviation = 0;
  double centre = 0;  // mean of ln(size) over all points
  double spread = 0;  // sum of (ln(size) - centre)^2 over all points
  /// The p value of an F test of the hypothesis that the mean of ln(error) at each size lies on a
  /// straight line. The noise is estimated from points of equal size. No value if no two points
  /// have equal size, or if there are fewer than three different sizes.
  std::optional<double> straight = {};

  double at(double n) const;  // the error that the law predicts at size n
  /// With probability 95%, the error of a new measurement at size n is in this interval. The bounds
  /// of the logarithm of the error are
  ///   ln at(n) +- t deviation sqrt(1 + 1 / points + (ln n - centre)^2 / spread),
  /// where points, deviation, centre and spread are members of this class, and t is
  /// student_quantile(0.05, points - 2).
  Interval next(double n) const;
  // True if the 95% interval of the exponent b in e = a n^-b is above 0, which means that the error
  // falls with the size.
  bool falls() const { return exponent_between.low > 0; }
};
struct SizeAndError {
  double n = 0, e = 0;  // size and error; both must be positive
};
/// Fits a power law. No value if there are fewer than three points, or if all points have the same
/// size.
std::optional<PowerLaw> power_law(std::span<const SizeAndError> points);

/// The smoothed share (wrong + 1/2) / (trials + 1) of errors, for `wrong` errors in `trials`
/// trials. It is never 0 or 1, so its logarithm is finite.
double smoothed_error(double wrong, double trials);

}  // namespace longhand::tasks
