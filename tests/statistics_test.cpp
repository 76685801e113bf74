#include "tasks/statistics.h"

#include <cmath>
#include <limits>
#include <vector>
#include "tests/check.h"

#include "core/error.h"

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
  BOOST_TEST(std::abs(parts.squares - 170) < 1e-12);  // 64 + 25 + 1 + 16 + 64
  BOOST_TEST(moments({5}).variance() == 0);
  BOOST_TEST(Moments().deviation() == 0);
}

// Where it has a closed form: I_x(1, b) = 1 - (1 - x)^b, I_x(a, 1) = x^a,
// I_x(1/2, 1/2) = 2 asin(sqrt x) / pi, and I_x(2, 3) = x^2 (6 - 8x + 3x^2).
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

// The table of t printed in statistics books: rows are degrees of freedom, columns two-sided p.
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
  BOOST_TEST(std::abs(student_two_sided(1, 1) - 0.5) < 1e-14);  // Cauchy's quartile
  BOOST_TEST(student_quantile(1, 5) < 1e-12);
  // Far out: with two degrees of freedom P = 1 - t / sqrt(t^2 + 2), about 1 / t^2.
  BOOST_TEST(std::abs(student_two_sided(1e6, 2) * 1e12 - 1) < 1e-9);
  BOOST_TEST(student_two_sided(std::numeric_limits<double>::infinity(), 2) == 0);
}

BOOST_AUTO_TEST_CASE(the_interval_of_a_mean) {
  const auto interval = mean_interval(moments({4, 6, 8, 10, 12}));
  BOOST_REQUIRE(interval.has_value());
  // 8 +- 2.776 sqrt(10) / sqrt(5)
  BOOST_TEST(std::abs(interval->low - (8 - 2.776445 * std::sqrt(2.0))) < 1e-5);
  BOOST_TEST(std::abs(interval->high - (8 + 2.776445 * std::sqrt(2.0))) < 1e-5);
  BOOST_TEST(!mean_interval(moments({3})));
}

// Worked by hand: means 20 and 24, s^2 / n of 10/5 and 8/4, so t = -4 / sqrt 4 = -2 with
// (2 + 2)^2 / (2^2 / 4 + 2^2 / 3) = 16 / (7/3) degrees of freedom.
BOOST_AUTO_TEST_CASE(welchs_test) {
  const Moments a = moments({16, 18, 20, 22, 24}),
                b = moments({24, 24, 24 - std::sqrt(12.0), 24 + std::sqrt(12.0)});
  const auto test = welch(a, b);
  BOOST_REQUIRE(test.has_value());
  BOOST_TEST(std::abs(test->t + 2) < 1e-12);
  BOOST_TEST(std::abs(test->freedom - 48.0 / 7) < 1e-12);
  // Between the p of 6 and of 7 degrees of freedom, 0.0924 and 0.0856.
  BOOST_TEST(test->p < student_two_sided(2, 6));
  BOOST_TEST(test->p > student_two_sided(2, 7));
  BOOST_TEST(std::abs(student_two_sided(2, 6) - 0.0924) < 0.0001);
  BOOST_TEST(std::abs(student_two_sided(2, 7) - 0.0856) < 0.0001);
  BOOST_TEST(welch(b, a)->t == -test->t);
  BOOST_TEST(!welch(a, moments({3})));
  BOOST_TEST(!welch(moments({1, 1}), moments({2, 2})));
}

BOOST_AUTO_TEST_SUITE_END()
