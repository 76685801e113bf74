#pragma once

#include <cstdint>
#include <optional>

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

}  // namespace longhand::tasks
