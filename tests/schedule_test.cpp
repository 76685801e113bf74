#include "nn/training/schedule.h"

#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(schedule_test)

using longhand::nn::Schedule;
using longhand::nn::schedule_from_name;

namespace {
const auto close = boost::test_tools::tolerance(1e-12);
}

BOOST_AUTO_TEST_CASE(warm_up_is_a_straight_line_from_first_to_peak) {
  const Schedule s{.peak = 1e-3, .first = 1e-4, .warm_up = 9, .steps = 100};
  BOOST_TEST(s.at(0) == 1e-4, close);
  BOOST_TEST(s.at(1) == 2e-4, close);
  BOOST_TEST(s.at(3) == 4e-4, close);
  BOOST_TEST(s.at(9) == 1e-3, close);
}

BOOST_AUTO_TEST_CASE(linear_falls_straight_to_last) {
  const Schedule s{.peak = 1e-4, .warm_up = 100, .steps = 12000};
  BOOST_TEST(s.at(100) == 1e-4, close);
  BOOST_TEST(s.at(6050) == 0.5e-4, close);
  BOOST_TEST(s.at(9025) == 0.25e-4, close);
  BOOST_TEST(s.at(12000) == 0.0);
  BOOST_TEST(s.at(13000) == 0.0);
}

BOOST_AUTO_TEST_CASE(cosine_falls_to_three_quarters_at_a_third_and_half_at_the_middle) {
  const Schedule s{
      .curve = Schedule::Curve::cosine, .peak = 1, .last = 0, .warm_up = 10, .steps = 40};
  BOOST_TEST(s.at(5) == 0.5, close);
  BOOST_TEST(s.at(10) == 1.0, close);
  BOOST_TEST(s.at(20) == 0.75, close);
  BOOST_TEST(s.at(25) == 0.5, close);
  BOOST_TEST(s.at(30) == 0.25, close);
  BOOST_TEST(s.at(40) + 1 == 1.0, close);
}

BOOST_AUTO_TEST_CASE(one_cycle_rises_and_falls_along_half_cosines) {
  const Schedule s{.curve = Schedule::Curve::one_cycle,
                   .peak = 1,
                   .first = 0.04,
                   .last = 0.2,
                   .warm_up = 30,
                   .steps = 90};
  BOOST_TEST(s.at(10) == 0.04 + 0.96 * 0.25, close);
  BOOST_TEST(s.at(15) == 0.52, close);
  BOOST_TEST(s.at(30) == 1.0, close);
  BOOST_TEST(s.at(50) == 0.2 + 0.8 * 0.75, close);
  BOOST_TEST(s.at(60) == 0.6, close);
  BOOST_TEST(s.at(90) == 0.2, close);
}

BOOST_AUTO_TEST_CASE(constant_stays_at_its_peak_after_warm_up) {
  const Schedule s{.curve = Schedule::Curve::constant, .peak = 2, .warm_up = 4, .steps = 8};
  BOOST_TEST(s.at(1) == 0.5);
  BOOST_TEST(s.at(4) == 2.0);
  BOOST_TEST(s.at(800) == 2.0);
}

BOOST_AUTO_TEST_CASE(a_falling_rate_without_its_number_of_steps_is_refused) {
  for (const auto curve :
       {Schedule::Curve::linear, Schedule::Curve::cosine, Schedule::Curve::one_cycle}) {
    BOOST_CHECK_THROW((Schedule{.curve = curve, .peak = 1}.at(1)), longhand::Error);
  }
  BOOST_TEST((Schedule{.curve = Schedule::Curve::constant, .peak = 2}.at(1)) == 2.0);
}

BOOST_AUTO_TEST_CASE(curves_are_found_by_their_names) {
  for (const auto curve : {Schedule::Curve::constant, Schedule::Curve::linear,
                           Schedule::Curve::cosine, Schedule::Curve::one_cycle}) {
    BOOST_TEST((schedule_from_name(name_of(curve)) == curve));
  }
  BOOST_TEST(!schedule_from_name("step"));
}

BOOST_AUTO_TEST_SUITE_END()
