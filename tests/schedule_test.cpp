#include "nn/training/schedule.h"

#include <algorithm>
#include <vector>
#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(schedule_test)

using longhand::nn::Schedule;
using longhand::nn::schedule_from_name;

namespace {
const auto close = boost::test_tools::tolerance(1e-12);
}

BOOST_AUTO_TEST_CASE(every_step_has_the_rate_of_transformers_and_pytorch) {
  // Learning rates of PyTorch's optimizers in steps 1 to 8, read before each optimizer.step(). The
  // schedules were get_linear_schedule_with_warmup(optimizer, 3, 8), get_cosine_... and
  // get_constant_... of transformers, and OneCycleLR(optimizer, max_lr=1, total_steps=8,
  // pct_start=3/8).
  struct Published {
    Schedule::Curve curve;
    std::vector<double> rates;
  };
  const Published all[] = {{Schedule::Curve::linear, {0, 1. / 3, 2. / 3, 1, 0.8, 0.6, 0.4, 0.2}},
                           {Schedule::Curve::cosine,
                            {0, 1. / 3, 2. / 3, 1, 0.9045084971874737, 0.6545084971874737,
                             0.3454915028125263, 0.09549150281252633}},
                           {Schedule::Curve::constant, {0, 1. / 3, 2. / 3, 1, 1, 1, 1, 1}},
                           {Schedule::Curve::one_cycle,
                            {0.04, 0.52, 1, 0.904508879153485, 0.654509879153485, 0.345494120846515,
                             0.095495120846515, 4e-6}}};
  for (const Published& p : all) {
    const Schedule s{.curve = p.curve, .peak = 1, .warm_up = 3, .steps = 8};
    for (std::int64_t step = 1; step <= 8; ++step) {
      BOOST_TEST_CONTEXT(name_of(p.curve) << ", step " << step) {
        BOOST_TEST(s.at(step) == p.rates[static_cast<std::size_t>(step - 1)], close);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_last_rate_is_above_0_and_a_run_of_warm_up_alone_never_falls) {
  for (const auto curve :
       {Schedule::Curve::linear, Schedule::Curve::cosine, Schedule::Curve::one_cycle}) {
    for (const std::int64_t warm_up : {0, 1, 2, 5, 19, 20, 21, 100}) {
      const Schedule s{.curve = curve, .peak = 1, .warm_up = warm_up, .steps = 20};
      BOOST_TEST_CONTEXT(name_of(curve) << ", warm-up " << warm_up) {
        BOOST_TEST(s.at(20) > 0);
        for (std::int64_t step = 2; step <= std::min<std::int64_t>(20, warm_up); ++step) {
          BOOST_TEST(s.at(step) > s.at(step - 1));
        }
        for (std::int64_t step = 1; step <= 20; ++step) BOOST_TEST(s.at(step) <= 1);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(first_and_last_rate_can_be_set) {
  const Schedule s{.peak = 1e-3, .first = 1e-4, .last = 2e-4, .warm_up = 9, .steps = 109};
  BOOST_TEST(s.at(1) == 1e-4, close);
  BOOST_TEST(s.at(4) == 4e-4, close);
  BOOST_TEST(s.at(10) == 1e-3, close);
  BOOST_TEST(s.at(60) == 6e-4, close);
  BOOST_TEST(s.at(109) == 2.08e-4, close);
}

// The tests at_the_end_of_a_step_... check schedules with Place::end, which compute learning rates
// as version 0.1 did. A resumed run of that version uses them, so these rates must not change.

BOOST_AUTO_TEST_CASE(at_the_end_of_a_step_warm_up_is_a_straight_line_from_first_to_peak) {
  const Schedule s{
      .peak = 1e-3, .first = 1e-4, .warm_up = 9, .steps = 100, .place = Schedule::Place::end};
  BOOST_TEST(s.at(0) == 1e-4, close);
  BOOST_TEST(s.at(1) == 2e-4, close);
  BOOST_TEST(s.at(3) == 4e-4, close);
  BOOST_TEST(s.at(9) == 1e-3, close);
}

BOOST_AUTO_TEST_CASE(at_the_end_of_a_step_linear_falls_straight_to_last) {
  const Schedule s{.peak = 1e-4, .warm_up = 100, .steps = 12000, .place = Schedule::Place::end};
  BOOST_TEST(s.at(100) == 1e-4, close);
  BOOST_TEST(s.at(6050) == 0.5e-4, close);
  BOOST_TEST(s.at(9025) == 0.25e-4, close);
  BOOST_TEST(s.at(12000) == 0.0);
  BOOST_TEST(s.at(13000) == 0.0);
}

BOOST_AUTO_TEST_CASE(at_the_end_of_a_step_cosine_falls_to_half_at_the_middle) {
  const Schedule s{.curve = Schedule::Curve::cosine,
                   .peak = 1,
                   .last = 0,
                   .warm_up = 10,
                   .steps = 40,
                   .place = Schedule::Place::end};
  BOOST_TEST(s.at(5) == 0.5, close);
  BOOST_TEST(s.at(10) == 1.0, close);
  BOOST_TEST(s.at(20) == 0.75, close);
  BOOST_TEST(s.at(25) == 0.5, close);
  BOOST_TEST(s.at(30) == 0.25, close);
  BOOST_TEST(s.at(40) + 1 == 1.0, close);
}

BOOST_AUTO_TEST_CASE(at_the_end_of_a_step_one_cycle_rises_and_falls_along_half_cosines) {
  const Schedule s{.curve = Schedule::Curve::one_cycle,
                   .peak = 1,
                   .first = 0.04,
                   .last = 0.2,
                   .warm_up = 30,
                   .steps = 90,
                   .place = Schedule::Place::end};
  BOOST_TEST(s.at(10) == 0.04 + 0.96 * 0.25, close);
  BOOST_TEST(s.at(15) == 0.52, close);
  BOOST_TEST(s.at(30) == 1.0, close);
  BOOST_TEST(s.at(50) == 0.2 + 0.8 * 0.75, close);
  BOOST_TEST(s.at(60) == 0.6, close);
  BOOST_TEST(s.at(90) == 0.2, close);
}

BOOST_AUTO_TEST_CASE(at_the_end_of_a_step_constant_stays_at_its_peak_after_warm_up) {
  const Schedule s{.curve = Schedule::Curve::constant,
                   .peak = 2,
                   .warm_up = 4,
                   .steps = 8,
                   .place = Schedule::Place::end};
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
