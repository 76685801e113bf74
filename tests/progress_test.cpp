// Tests the progress line of a training, which is cut to the width of the terminal.
#include "apps/run/progress.h"

#include "tests/check.h"

namespace progress_test {

using namespace longhand;
using namespace longhand::app;

const ProgressState half{.step = 500,
                         .steps = 1000,
                         .loss = 0.25,
                         .accuracy = 0.875,
                         .seconds = 0.02,
                         .tokens = 4000,
                         .peak = 0.431,
                         .memory = 48u << 20};

}  // namespace progress_test

BOOST_AUTO_TEST_SUITE(progress_test)

BOOST_AUTO_TEST_CASE(a_progress_line_shows_as_many_parts_as_fit) {
  BOOST_TEST(progress_line(half, 0) ==
             "step 500/1000  loss 0.2500  accuracy 87.5%  20.0 ms/step  200000 tokens/s  "
             "43.1% of peak  48 MiB  0:10 left");
  BOOST_TEST(progress_line(half, 20) == "step 500/1000");
  BOOST_TEST(progress_line(half, 40) == "step 500/1000  loss 0.2500  0:10 left");
  BOOST_TEST(progress_line(half, 60) == "step 500/1000  loss 0.2500  accuracy 87.5%  0:10 left");
  BOOST_TEST(progress_line(half, 79) ==
             "step 500/1000  loss 0.2500  accuracy 87.5%  200000 tokens/s  0:10 left");
  BOOST_TEST(progress_line(half, 130) ==
             "[#########..........]  step 500/1000  loss 0.2500  accuracy 87.5%  20.0 ms/step  "
             "200000 tokens/s  43.1% of peak  48 MiB  0:10 left");
}

BOOST_AUTO_TEST_CASE(the_progress_of_several_ranks_is_that_of_the_slowest) {
  ProgressState state = half;
  state.slowest = {.rank = 3, .seconds = 0.0171};
  BOOST_TEST(progress_line(state, 0) ==
             "step 500/1000  loss 0.2500  accuracy 87.5%  20.0 ms/step  slowest rank 3: 17.1 ms  "
             "200000 tokens/s  43.1% of peak  48 MiB  0:10 left");
}

BOOST_AUTO_TEST_CASE(no_line_is_wider_than_its_columns) {
  ProgressState state = half;
  state.steps = 1'000'000'000'000;
  state.loss = 1e300;
  for (std::size_t columns = 1; columns <= 200; ++columns) {
    BOOST_TEST(progress_line(half, columns).size() <= columns);
    BOOST_TEST(progress_line(state, columns).size() <= columns);
  }
  state = half;
  state.step = state.steps;
  BOOST_TEST(progress_line(state, 200).starts_with("[##############################]  step 1000"));
}

BOOST_AUTO_TEST_SUITE_END()
