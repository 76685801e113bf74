#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tasks/tally.h"

/// What can be said of means (docs/math/statistics.md). Shares have wilson(), in tasks/tally.h.
namespace longhand::tasks {

/// Count, mean and spread of the values added so far, by Welford's recurrence.
struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of (x - mean)^2

  void add(double value);
  void add(const Moments& other);  // its values
  double variance() const;         // squares / (count - 1); 0 of fewer than two values
  double deviation() const;
};

/// I_x(a, b), the regularised incomplete beta function, for a, b > 0 and x in [0, 1].
double incomplete_beta(double a, double b, double x);

/// P(|T| >= |t|) of Student's distribution; degrees of freedom > 0, not only whole ones.
double student_two_sided(double t, double freedom);
/// The t with P(|T| >= t) = p, for 0 < p <= 1.
double student_quantile(double p, double freedom);

/// The 95% interval of a mean, mean +- t s / sqrt(n); none of fewer than two values.
std::optional<Interval> mean_interval(const Moments& values);

/// Welch's test of two means being equal, variances being what they may:
///   t = (mean_a - mean_b) / sqrt(s_a^2 / n_a + s_b^2 / n_b)
/// with Welch and Satterthwaite's degrees of freedom, and the two-sided p.
struct Welch {
  double t = 0, freedom = 0, p = 1;
};
/// None where one of them has fewer than two values, or both do not vary.
std::optional<Welch> welch(const Moments& a, const Moments& b);

/// e(n) = a n^-b by least squares of ln e on ln n.
struct PowerLaw {
  std::int64_t points = 0;
  double log_factor = 0;           // ln a
  double exponent = 0;             // b
  Interval exponent_between = {};  // 95%, by Student's t with points - 2 degrees of freedom
  double deviation = 0;            // s of ln e around the line: s^2 = sum of squares / (points - 2)
  double centre = 0;               // the mean of ln n
  double spread = 0;               // sum of (ln n - centre)^2
  /// The p of the F test that the means of ln e at each n lie on one line, next to how points of
  /// one n differ; none without such points, or with fewer than three n.
  std::optional<double> straight = {};

  double at(double n) const;  // a n^-b
  /// Where one more e lies with 95%, in logarithms
  ///   ln at(n) +- t s sqrt(1 + 1 / points + (ln n - centre)^2 / spread)
  Interval next(double n) const;
  bool falls() const { return exponent_between.low > 0; }  // or is the slope none, or upwards
};
struct SizeAndError {
  double n = 0, e = 0;  // both positive
};
/// None of fewer than three points, or where all have the same n.
std::optional<PowerLaw> power_law(std::span<const SizeAndError> points);

/// The error of `wrong` out of `trials` for a logarithm: (wrong + 1/2) / (trials + 1), never 0
/// or 1.
double smoothed_error(double wrong, double trials);

}  // namespace longhand::tasks
