#include "tests/tolerance.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace longhand;

// The comparer itself: what it must not let pass.
BOOST_AUTO_TEST_SUITE(tolerance_test)

namespace {
const tolerance::Results expected{{"y", {1.0, -2.0, 0.0}}};
const tolerance::Results bound{{"y", {1e-3, 1e-3, 1e-3}}};
double used(std::vector<double> y) {
  return tolerance::compare(expected, {{"y", std::move(y)}}, bound).used;
}
}  // namespace

BOOST_AUTO_TEST_CASE(equal_values_use_nothing_of_the_bound) { BOOST_TEST(used({1, -2, 0}) == 0); }

BOOST_AUTO_TEST_CASE(the_share_of_the_bound_is_reported) {
  BOOST_TEST(used({1.0005, -2, 0}) == 0.5, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(sign_factor_nan_infinity_size_and_names_are_seen) {
  BOOST_TEST(used({1, 2, 0}) > 1);
  BOOST_TEST(used({2, -2, 0}) > 1);
  BOOST_TEST(used({1, -2, std::nan("")}) > 1);
  BOOST_TEST(used({1, -2, HUGE_VAL}) > 1);
  BOOST_TEST(used({1, -2}) > 1);
  BOOST_TEST(tolerance::compare(expected, {{"z", {1, -2, 0}}}, bound).used > 1);
  BOOST_TEST(tolerance::compare({{"y", {HUGE_VAL}}}, {{"y", {-HUGE_VAL}}}, bound).used > 1);
  BOOST_TEST(tolerance::compare({{"y", {HUGE_VAL}}}, {{"y", {HUGE_VAL}}}, bound).used == 0);
}

BOOST_AUTO_TEST_SUITE_END()
