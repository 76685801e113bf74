#include "autograd/tolerance.h"

#include <cmath>
#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(tolerance_test)

using namespace longhand;

// Tests which errors are detected by the comparison of results within a tolerance.

namespace {

tolerance::Result result(tolerance::Values values, DType type = DType::f32) {
  return {{static_cast<std::int64_t>(values.size())}, type, std::move(values)};
}

/// Compares `got` with y = (1, -2, 0). The rounding errors of y have the standard deviation 1e-5,
/// and the unit of rounding is 2^-24.
tolerance::Worst compared(const tolerance::Results& got, tolerance::Values y = {1, -2, 0}) {
  tolerance::Noise noise;
  for (int t = 0; t < tolerance::trials; ++t) {
    noise.operands["y"].emplace_back(y.size(), t % 2 == 0 ? 1e-5 : -1e-5);
    noise.all["y"].emplace_back(y.size(), 0.0);
  }
  tolerance::Comparison comparison(catalog::find("scale"), DType::f32, 0x1p-24);
  comparison.add({}, {{"y", result(y)}}, noise, got);
  return comparison.worst();
}
double used(tolerance::Values y) { return compared({{"y", result(std::move(y))}}).used; }

}  // namespace

BOOST_AUTO_TEST_CASE(equal_values_have_no_error) { BOOST_TEST(used({1, -2, 0}) == 0); }

BOOST_AUTO_TEST_CASE(the_share_of_the_bound_is_reported) {
  BOOST_TEST(std::abs(used({1, -2, 6e-5}) - 0.5) < 0.01);
  BOOST_TEST(used({1, -2, 11e-5}) < 1);
  BOOST_TEST(used({1, -2, 13e-5}) > 1);
}

BOOST_AUTO_TEST_CASE(wrong_signs_factors_sizes_and_names_are_detected) {
  BOOST_TEST(used({1, 2, 0}) > 1);
  BOOST_TEST(used({2, -2, 0}) > 1);
  BOOST_TEST(used({1, -2, std::nan("")}) > 1);
  BOOST_TEST(used({1, -2, HUGE_VAL}) > 1);
  BOOST_TEST(used({1, -2}) > 1);
  BOOST_TEST(compared({{"z", result({1, -2, 0})}}).used > 1);
  BOOST_TEST(compared({}).used > 1);
  BOOST_TEST(compared({{"y", result({-HUGE_VAL})}}, {HUGE_VAL}).used > 1);
  BOOST_TEST(compared({{"y", result({HUGE_VAL})}}, {HUGE_VAL}).used == 0);
  BOOST_TEST(compared({{"y", result({std::nan("")})}}, {std::nan("")}).used == 0);
}

// If all 1000 entries of a result are multiplied by 1.04, this must be detected, although no single
// entry exceeds its own bound, 12 standard deviations of its rounding errors.
BOOST_AUTO_TEST_CASE(a_common_factor_is_detected_even_if_no_single_entry_exceeds_its_bound) {
  Rng rng(1, Purpose::test);
  constexpr double sigma = 0.05;
  const auto noisy = [&](tolerance::Values x) {
    for (double& value : x) value += sigma * rng.normal();
    return x;
  };
  tolerance::Values y(1000);
  for (double& value : y) value = rng.normal();
  tolerance::Noise noise;
  for (int t = 0; t < tolerance::trials; ++t) {
    noise.operands["y"].push_back(noisy(tolerance::Values(y.size(), 0.0)));
    noise.all["y"].emplace_back(y.size(), 0.0);
  }
  const auto used = [&](double factor) {
    tolerance::Values got = noisy(y);
    for (double& value : got) value *= factor;
    tolerance::Comparison comparison(catalog::find("scale"), DType::f32, 0x1p-24);
    comparison.add({}, {{"y", result(y)}}, noise, {{"y", result(got)}});
    return comparison.worst();
  };
  BOOST_TEST(used(1).used < 1);
  const tolerance::Worst off = used(1.04);
  BOOST_TEST(off.used > 1);
  BOOST_TEST(off.where.find("slope of") != off.where.npos);
}

BOOST_AUTO_TEST_CASE(integers_must_be_equal) {
  tolerance::Comparison comparison(catalog::find("argmax"), DType::f32, 0x1p-24);
  comparison.add({}, {{"y", result({1, 2}, DType::i32)}}, {}, {{"y", result({1, 3}, DType::i32)}});
  BOOST_TEST(comparison.worst().used > 1);
}

BOOST_AUTO_TEST_SUITE_END()
