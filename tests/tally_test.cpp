#include "tasks/tally.h"

#include <cmath>
#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(tally_test)

using namespace longhand;
using namespace longhand::tasks;

// Each end p of the interval must solve |p - share| = z sqrt(p (1 - p) / n), where `share` is the
// share of hits in n trials and z is 1.96.
BOOST_AUTO_TEST_CASE(the_ends_of_the_interval_are_z_deviations_away) {
  for (const auto& [hits, trials] : {std::pair{1.0, 10.0}, {50.0, 100.0}, {999.0, 1000.0}}) {
    const Interval interval = wilson(hits, trials);
    for (const double p : {interval.low, interval.high}) {
      const double deviations = std::abs(p - hits / trials) / std::sqrt(p * (1 - p) / trials);
      BOOST_TEST(std::abs(deviations - 1.959963984540054) < 1e-9);
    }
    BOOST_TEST(interval.low < hits / trials);
    BOOST_TEST(interval.high > hits / trials);
  }
}

BOOST_AUTO_TEST_CASE(intervals_stay_in_bounds) {
  BOOST_TEST(wilson(0, 0).low == 0);
  BOOST_TEST(wilson(0, 0).high == 1);
  BOOST_TEST(wilson(0, 10).low == 0);
  // The upper end is z^2 / (n + z^2) with z = 1.96 and n = 10.
  BOOST_TEST(std::abs(wilson(0, 10).high - 0.2775) < 1e-4);
  BOOST_TEST(std::abs(wilson(10, 10).low - 0.7225) < 1e-4);
  BOOST_TEST(wilson(10, 10).high <= 1);
  BOOST_CHECK_THROW(wilson(2, 1), Error);
}

BOOST_AUTO_TEST_CASE(tallies_add_up) {
  Tally a;
  a.add_share("reads", 3, 4);
  a.add_value("distance", 5);
  Tally b;
  b.add_share("reads", 1, 4);
  b.add_share("sequences", 1, 1);
  b.add_value("distance", 2);
  a.add(b);
  BOOST_TEST(a.at("reads").mean() == 0.5);
  BOOST_TEST(a.at("distance").mean() == 3.5);
  BOOST_TEST(!a.at("distance").is_share);
  BOOST_TEST(a.at("sequences").count == 1);
  BOOST_TEST(a.metrics().size() == 3u);
  BOOST_TEST(a.metrics()[0].name == "reads");
  BOOST_CHECK_THROW(a.at("words"), Error);
  BOOST_CHECK_THROW(a.add_value("reads", 1), Error);
}

BOOST_AUTO_TEST_SUITE_END()
