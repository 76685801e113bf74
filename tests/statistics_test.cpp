#include "tasks/statistics.h"

#include <cmath>
#include <limits>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "core/rng.h"

BOOST_AUTO_TEST_SUITE(statistics_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

Moments moments(const std::vector<double>& values) {
  Moments all;
  for (const double value : values) all.add(value);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(moments_of_a_few_values) {
  const Moments a = moments({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  BOOST_TEST(a.count == 4);
  BOOST_TEST(a.mean == 1e9 + 10);
  BOOST_TEST(a.variance() == 30);
  BOOST_TEST(a.deviation() == std::sqrt(30.0));
  Moments parts = moments({4, 7});
  parts.add(Moments());
  parts.add(moments({13, 16, 20}));
  BOOST_TEST(parts.count == 5);
  BOOST_TEST(std::abs(parts.mean - 12) < 1e-14);
  BOOST_TEST(std::abs(parts.squares - 170) < 1e-12);  // squared deviations: 64 + 25 + 1 + 16 + 64
  BOOST_TEST(moments({5}).variance() == 0);
  BOOST_TEST(Moments().deviation() == 0);
}

// Compares the incomplete beta function I_x(a, b) with closed forms: I_x(1, b) = 1 - (1 - x)^b,
// I_x(a, 1) = x^a, I_x(1/2, 1/2) = 2 asin(sqrt x) / pi, and I_x(2, 3) = x^2 (6 - 8x + 3x^2).
BOOST_AUTO_TEST_CASE(the_incomplete_beta_function) {
  for (const double x : {1e-9, 0.01, 0.2, 0.5, 0.77, 0.999}) {
    const auto close = [&](double a, double b, double expected) {
      BOOST_TEST_CONTEXT(a << ", " << b << " at " << x) {
        BOOST_TEST(std::abs(incomplete_beta(a, b, x) / expected - 1) < 1e-12);
      }
    };
    close(1, 7.5, -std::expm1(7.5 * std::log1p(-x)));
    close(3.25, 1, std::pow(x, 3.25));
    close(0.5, 0.5, 2 * std::asin(std::sqrt(x)) / std::acos(-1.0));
    close(2, 3, x * x * (6 - 8 * x + 3 * x * x));
  }
  BOOST_TEST(incomplete_beta(3, 4, 0) == 0);
  BOOST_TEST(incomplete_beta(3, 4, 1) == 1);
  BOOST_TEST(std::abs(incomplete_beta(1e6, 1e6, 0.5) - 0.5) < 1e-9);
  BOOST_CHECK_THROW(incomplete_beta(0, 1, 0.5), Error);
  BOOST_CHECK_THROW(incomplete_beta(1, 1, 1.5), Error);
}

// The table of Student's t as printed in statistics books. Rows are degrees of freedom, and columns
// are two-sided probabilities p.
BOOST_AUTO_TEST_CASE(quantiles_of_students_distribution) {
  struct Line {
    double freedom, p10, p5, p1, p01;
  };
  constexpr Line table[] = {
      {1, 6.314, 12.706, 63.657, 636.619}, {2, 2.920, 4.303, 9.925, 31.599},
      {3, 2.353, 3.182, 5.841, 12.924},    {4, 2.132, 2.776, 4.604, 8.610},
      {5, 2.015, 2.571, 4.032, 6.869},     {7, 1.895, 2.365, 3.499, 5.408},
      {10, 1.812, 2.228, 3.169, 4.587},    {15, 1.753, 2.131, 2.947, 4.073},
      {20, 1.725, 2.086, 2.845, 3.850},    {30, 1.697, 2.042, 2.750, 3.646},
      {60, 1.671, 2.000, 2.660, 3.460},    {120, 1.658, 1.980, 2.617, 3.373},
      {1e7, 1.645, 1.960, 2.576, 3.291},
  };
  for (const Line& line : table) {
    const auto check = [&](double p, double t) {
      BOOST_TEST_CONTEXT("freedom " << line.freedom << ", p " << p) {
        BOOST_TEST(std::abs(student_quantile(p, line.freedom) - t) < 0.00051);
        BOOST_TEST(std::abs(student_two_sided(-t, line.freedom) / p - 1) < 0.01);
      }
    };
    check(0.10, line.p10);
    check(0.05, line.p5);
    check(0.01, line.p1);
    check(0.001, line.p01);
  }
  BOOST_TEST(student_two_sided(0, 3) == 1);
  // With one degree of freedom, t = 1 is the quartile of the Cauchy distribution.
  BOOST_TEST(std::abs(student_two_sided(1, 1) - 0.5) < 1e-14);
  BOOST_TEST(student_quantile(1, 5) < 1e-12);
  // In the far tail with two degrees of freedom, the two-sided probability is about 1 / t^2.
  // Exactly, it is
  //   1 - t / sqrt(t^2 + 2).
  BOOST_TEST(std::abs(student_two_sided(1e6, 2) * 1e12 - 1) < 1e-9);
  BOOST_TEST(student_two_sided(std::numeric_limits<double>::infinity(), 2) == 0);
}

BOOST_AUTO_TEST_CASE(the_interval_of_a_mean_is_right) {
  const auto interval = mean_interval(moments({4, 6, 8, 10, 12}));
  BOOST_REQUIRE(interval.has_value());
  // The mean is 8, the variance is 10, and the quantile of Student's t is 2.776. So the interval is
  // 8 +- 2.776 sqrt(10) / sqrt(5).
  BOOST_TEST(std::abs(interval->low - (8 - 2.776445 * std::sqrt(2.0))) < 1e-5);
  BOOST_TEST(std::abs(interval->high - (8 + 2.776445 * std::sqrt(2.0))) < 1e-5);
  BOOST_TEST(!mean_interval(moments({3})));
}

// Computed by hand: the means are 20 and 24. The variances of the means, s^2 / n, are 10/5 and 8/4.
// So t = -4 / sqrt 4 = -2, with (2 + 2)^2 / (2^2 / 4 + 2^2 / 3) = 16 / (7/3) degrees of freedom.
BOOST_AUTO_TEST_CASE(welchs_test) {
  const Moments a = moments({16, 18, 20, 22, 24}),
                b = moments({24, 24, 24 - std::sqrt(12.0), 24 + std::sqrt(12.0)});
  const auto test = welch(a, b);
  BOOST_REQUIRE(test.has_value());
  BOOST_TEST(std::abs(test->t + 2) < 1e-12);
  BOOST_TEST(std::abs(test->freedom - 48.0 / 7) < 1e-12);
  // p is between 0.0856, its value for 7 degrees of freedom, and 0.0924, its value for 6.
  BOOST_TEST(test->p < student_two_sided(2, 6));
  BOOST_TEST(test->p > student_two_sided(2, 7));
  BOOST_TEST(std::abs(student_two_sided(2, 6) - 0.0924) < 0.0001);
  BOOST_TEST(std::abs(student_two_sided(2, 7) - 0.0856) < 0.0001);
  BOOST_TEST(welch(b, a)->t == -test->t);
  BOOST_TEST(!welch(a, moments({3})));
  BOOST_TEST(!welch(moments({1, 1}), moments({2, 2})));
}

// At each size n, the error is exactly 3 n^-0.5.
BOOST_AUTO_TEST_CASE(an_exact_power_law_is_found) {
  std::vector<SizeAndError> points;
  for (const double n : {100.0, 400.0, 400.0, 1600.0}) points.push_back({n, 3 / std::sqrt(n)});
  const auto law = power_law(points);
  BOOST_REQUIRE(law.has_value());
  BOOST_TEST(law->points == 4);
  BOOST_TEST(std::abs(law->exponent - 0.5) < 1e-12);
  BOOST_TEST(std::abs(law->at(1e6) - 0.003) < 1e-12);
  BOOST_TEST(law->deviation < 1e-12);
  BOOST_TEST(std::abs(law->next(1e6).low / 0.003 - 1) < 1e-9);
  BOOST_TEST(law->falls());
  BOOST_TEST(law->straight.has_value());
}

// Computed by hand: x = -1, 0, 1 are the logarithms of the sizes, and y = 1, 0.5, -1 are those of
// the errors. The slope is -1, the mean of y is 1/6, and the residuals are -1/6, 1/3, -1/6. The
// squares of the residuals sum to 1/6. With one degree of freedom, t is 12.706.
BOOST_AUTO_TEST_CASE(intervals_of_a_noisy_power_law_are_students) {
  const std::vector<SizeAndError> points{
      {std::exp(-1.0), std::exp(1.0)}, {1, std::exp(0.5)}, {std::exp(1.0), std::exp(-1.0)}};
  const auto law = power_law(points);
  BOOST_REQUIRE(law.has_value());
  const double s = std::sqrt(1.0 / 6), t = 12.7062047;
  BOOST_TEST(std::abs(law->exponent - 1) < 1e-12);
  BOOST_TEST(std::abs(law->deviation - s) < 1e-12);
  BOOST_TEST(std::abs(law->exponent_between.low - (1 - t * s / std::sqrt(2.0))) < 1e-6);
  BOOST_TEST(std::abs(law->exponent_between.high - (1 + t * s / std::sqrt(2.0))) < 1e-6);
  BOOST_TEST(!law->falls());
  const double n = std::exp(2.0);
  BOOST_TEST(std::abs(std::log(law->at(n)) - (1.0 / 6 - 2)) < 1e-12);
  const double half = t * s * std::sqrt(1 + 1.0 / 3 + 4.0 / 2);
  BOOST_TEST(std::abs(std::log(law->next(n).high) - (1.0 / 6 - 2 + half)) < 1e-6);
  BOOST_TEST(std::abs(std::log(law->next(n).low) - (1.0 / 6 - 2 - half)) < 1e-6);
}

// For a power law with normal noise, the interval of the exponent must contain the exponent in 95%
// of the trials, and the interval of a further point must contain this point in 95% of the trials.
BOOST_AUTO_TEST_CASE(intervals_of_power_laws_have_the_stated_coverage) {
  Rng rng(7, Purpose::test);
  int holds_exponent = 0, holds_next = 0, bent = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<SizeAndError> points;
    for (int i = 0; i < 9; ++i) {
      const double n = std::pow(4.0, i / 3);
      points.push_back({n, 0.2 * std::pow(n, -0.7) * std::exp(0.3 * rng.normal())});
    }
    const auto law = power_law(points);
    bent += *law->straight < 0.05;
    holds_exponent += law->exponent_between.low <= 0.7 && 0.7 <= law->exponent_between.high;
    const double further = 0.2 * std::pow(64.0, -0.7) * std::exp(0.3 * rng.normal());
    holds_next += law->next(64).low <= further && further <= law->next(64).high;
  }
  // Over 2000 trials, a share of 0.95 or 0.05 has a standard deviation of 0.005. Three standard
  // deviations are allowed.
  BOOST_TEST(std::abs(holds_exponent / double{trials} - 0.95) < 0.015);
  BOOST_TEST(std::abs(holds_next / double{trials} - 0.95) < 0.015);
  BOOST_TEST(std::abs(bent / double{trials} - 0.05) < 0.015);
}

// Computed by hand from the logarithms x of the sizes and y of the errors: at x = 0, 1, 2 the means
// of y are 0, 3, 0, so the fitted line is constant at 1. The squared distances of the means from
// the line sum to 2 (1 + 4 + 1) = 12, and those of the points from their means sum to 3. So F = 12
// with 1 and 3 degrees of freedom. This F is the square of a t with 3 degrees of freedom.
BOOST_AUTO_TEST_CASE(a_bending_power_law_is_reported) {
  const double s = std::sqrt(0.5), e = std::exp(1.0);
  std::vector<SizeAndError> points;
  for (const double sign : {-1.0, 1.0}) {
    points.push_back({1, std::exp(sign * s)});
    points.push_back({e, std::exp(3 + sign * s)});
    points.push_back({e * e, std::exp(sign * s)});
  }
  const auto law = power_law(points);
  BOOST_REQUIRE(law.has_value());
  BOOST_TEST(std::abs(law->exponent) < 1e-12);
  BOOST_TEST(std::abs(*law->straight - student_two_sided(std::sqrt(12.0), 3)) < 1e-9);
  BOOST_TEST(!power_law(std::vector<SizeAndError>{{1, 1}, {2, 0.9}, {4, 0.1}})->straight);
  BOOST_TEST(!power_law(std::vector<SizeAndError>{{1, 1}, {1, 0.9}, {4, 0.1}})->straight);
}

BOOST_AUTO_TEST_CASE(too_few_points_give_no_power_law) {
  BOOST_TEST(!power_law({}));
  BOOST_TEST(!power_law(std::vector<SizeAndError>{{1, 1}, {2, 0.5}}));
  BOOST_TEST(!power_law(std::vector<SizeAndError>{{8, 1}, {8, 0.5}, {8, 0.7}}));
  const auto level = power_law(std::vector<SizeAndError>{{1, 0.5}, {10, 0.5}, {100, 0.5}});
  BOOST_REQUIRE(level.has_value());
  BOOST_TEST(level->exponent == 0);
  BOOST_TEST(!level->falls());
  const double infinity = std::numeric_limits<double>::infinity();
  for (const SizeAndError wrong :
       {SizeAndError{0, 1}, {1, 0}, {1, -1}, {infinity, 1}, {1, infinity}, {1, std::nan("")}}) {
    BOOST_CHECK_THROW(power_law(std::vector<SizeAndError>{{2, 1}, {4, 1}, wrong}), Error);
  }
  BOOST_TEST(smoothed_error(0, 99) == 0.005);
  BOOST_TEST(smoothed_error(99, 99) == 0.995);
}

BOOST_AUTO_TEST_SUITE_END()
