#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/tally.h"

/// Statistics of means (docs/math/statistics.md). For shares, see wilson() in tasks/tally.h.
namespace longhand::tasks {

/// Count, mean and spread of values, updated by Welford's recurrence.
struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of (x - mean)^2

  void add(double value);
  void add(const Moments& other);  // adds all values that were added to `other`
  double variance() const;         // squares / (count - 1); 0 for fewer than two values
  double deviation() const;
};

/// The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].
double incomplete_beta(double a, double b, double x);

/// P(|T| >= |t|) for Student's t distribution. `freedom` is the number of degrees of freedom. It
/// must be positive, but need not be an integer.
double student_two_sided(double t, double freedom);
/// The t with P(|T| >= t) = p, for 0 < p <= 1.
double student_quantile(double p, double freedom);

/// The 95% interval of the mean of n values, mean +- t s / sqrt(n). No value if there are fewer
/// than two values.
std::optional<Interval> mean_interval(const Moments& values);

/// Welch's test of equal means with unequal variances:
///   t = (mean_a - mean_b) / sqrt(s_a^2 / n_a + s_b^2 / n_b)
/// with the degrees of freedom of Welch and Satterthwaite, and the two-sided p.
struct Welch {
  double t = 0, freedom = 0, p = 1;
};
/// No value if a or b has fewer than two values, or if both variances are 0.
std::optional<Welch> welch(const Moments& a, const Moments& b);

/// A power law e(n) = a n^-b, fitted by least squares of ln e on ln n.
struct PowerLaw {
  std::int64_t points = 0;
  double log_factor = 0;  // ln a
  double exponent = 0;    // the exponent b
  Interval exponent_between =
      {};  // 95% interval of b by Student's t with points - 2 degrees of freedom
  // s, the deviation of ln e from the line: s^2 = (sum of squares) / (points - 2).
  double deviation = 0;
  double centre = 0;  // mean of ln n
  double spread = 0;  // sum of (ln n - centre)^2
  /// The p value of an F test of the hypothesis that, for each n, the mean of ln e lies on the
  /// straight line. The error is estimated from the spread of ln e among points with equal n. No
  /// value if no points have equal n, or if there are fewer than three different n.
  std::optional<double> straight = {};

  double at(double n) const;  // the predicted error e(n) = a n^-b
  /// The 95% prediction interval of one further error e at n. The bounds of ln e are
  ///   ln at(n) +- t s sqrt(1 + 1 / points + (ln n - centre)^2 / spread)
  Interval next(double n) const;
  // True if the 95% interval of b is above 0, which means that the error falls with n.
  bool falls() const { return exponent_between.low > 0; }
};
struct SizeAndError {
  double n = 0, e = 0;  // both must be positive
};
/// No value if there are fewer than three points, or if all points have the same n.
std::optional<PowerLaw> power_law(std::span<const SizeAndError> points);

/// The smoothed share (wrong + 1/2) / (trials + 1) of errors, for `wrong` errors in `trials`
/// trials. It is never 0 or 1, so its logarithm is finite.
double smoothed_error(double wrong, double trials);

}  // namespace longhand::tasks
