#include "nn/examples.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "core/random_order.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(examples_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// n examples. Example i has the features i and 2 i, the target i and the value -i.
Examples examples_of(int n) {
  std::string features, values;
  Examples made;
  for (int i = 0; i < n; ++i) {
    features += {static_cast<char>(i), static_cast<char>(2 * i)};
    values += static_cast<char>(-i);
    made.targets.push_back(i);
  }
  made.features = Numbers({n, 2}, Numbers::Type::u8, features);
  made.values = Numbers({n, 1}, Numbers::Type::i8, values);
  return made;
}

/// Checks that a row with target t has the features t and 2 t, times `scale`, and the value -t.
void check_rows(const Batch& batch, double scale = 1) {
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    BOOST_TEST(batch.features.values[2 * i] == scale * batch.targets[i]);
    BOOST_TEST(batch.features.values[2 * i + 1] == scale * 2 * batch.targets[i]);
    BOOST_TEST(batch.values.values[i] == -batch.targets[i]);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_batch_contains_the_rows_and_their_targets) {
  Examples examples = examples_of(10);
  examples.scale = 0.5;
  const Batch batch = examples.batch(std::vector<std::int64_t>{7, 2, 7});
  BOOST_TEST(batch.targets == std::vector<std::int32_t>({7, 2, 7}));
  BOOST_TEST(batch.features.shape == Shape({3, 2}));
  BOOST_TEST(batch.values.shape == Shape({3, 1}));
  check_rows(batch, 0.5);
  BOOST_TEST(examples.batch(8, 2).targets == std::vector<std::int32_t>({8, 9}));
  expect_refusal([&] { examples.batch(8, 3); },
                 "examples: expected a range within the 10 examples, got 3 examples from index 8");
  expect_refusal([&] { examples.batch(std::numeric_limits<std::int64_t>::max(), 2); },
                 "got 2 examples from");
  expect_refusal([&] { examples.batch(-1, 2); }, "got 2 examples from index -1");
}

BOOST_AUTO_TEST_CASE(every_epoch_contains_each_example_once) {
  const BatchSource source = shuffled_batches(examples_of(10), 4, 3, /*batches=*/2);
  std::vector<std::int32_t> targets;
  for (int step = 1; step <= 5; ++step) {
    for (int place = 0; place < 2; ++place) {
      const Batch batch = source(step, place);
      BOOST_TEST(batch.targets.size() == 4u);
      check_rows(batch);
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
  }
  std::set<std::vector<std::int32_t>> orders;
  for (auto at = targets.begin(); at != targets.end(); at += 10) {
    std::vector<std::int32_t> epoch(at, at + 10);
    orders.insert(epoch);
    std::ranges::sort(epoch);
    BOOST_TEST(epoch == examples_of(10).targets);
  }
  BOOST_TEST(orders.size() == 4u);
  BOOST_TEST(source(3, 1).targets == source(3, 1).targets);
  for (const std::int64_t place : {-1, 2}) {
    expect_refusal([&] { source(1, place); },
                   text("expected a step of at least 1 and a batch index from 0 to 1, because a "
                        "step has 2 batches, got step 1 and batch index ",
                        place));
  }
  expect_refusal([&] { source(0, 0); }, "got step 0 and batch index 0");
  // A batch may be larger than the data set.
  BOOST_TEST(shuffled_batches(examples_of(3), 8, 1)(1, 0).targets.size() == 8u);
}

BOOST_AUTO_TEST_CASE(a_split_divides_the_examples) {
  const auto [first, second] = examples_of(10).split(0.75, 5);
  BOOST_TEST(first.count() == 7);
  BOOST_TEST(second.count() == 3);
  check_rows(first.batch(0, 7));
  check_rows(second.batch(0, 3));
  std::vector<std::int32_t> all = first.targets;
  all.insert(all.end(), second.targets.begin(), second.targets.end());
  BOOST_TEST(all != examples_of(10).targets);
  // split() must divide the examples in the random order with the purpose `split`.
  const RandomOrder order(10, 5, Purpose::split, 0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    BOOST_TEST(all[i] == static_cast<std::int32_t>(order[i]));
  }
  std::ranges::sort(all);
  BOOST_TEST(all == examples_of(10).targets);
}

BOOST_AUTO_TEST_CASE(inconsistent_examples_are_refused) {
  Examples wrong = examples_of(4);
  wrong.targets.pop_back();
  expect_refusal([&] { wrong.batch(0, 1); }, "examples: expected 4 targets, got 3");
  wrong = examples_of(4);
  wrong.values = Numbers({3, 1}, Numbers::Type::u8, "abc");
  expect_refusal([&] { shuffled_batches(wrong, 1, 1); },
                 "values: expected 4 rows, one for each example, got the shape [3, 1]");
  expect_refusal([&] { shuffled_batches(examples_of(0), 1, 1); }, "at least one example");
  expect_refusal([&] { shuffled_batches(examples_of(2), 0, 1); }, "got 0 and 1");
  expect_refusal([&] { shuffled_batches(examples_of(2), std::int64_t{1} << 62, 1); },
                 "from 1 to 2147483647, got 4611686018427387904 and 1");
  expect_refusal([&] { examples_of(0).split(0.5, 1); }, "examples: expected at least one example");
  expect_refusal([&] { examples_of(2).split(1.5, 1); },
                 "examples: split: expected a share from 0 to 1, got 1.5");
}

BOOST_AUTO_TEST_SUITE_END()
