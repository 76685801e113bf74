#include "apps/run/batches.h"

#include <map>
#include <set>
#include "tests/check.h"

#include "core/error.h"
#include "core/rng.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"

BOOST_AUTO_TEST_SUITE(batches_test)

using namespace longhand;
using namespace longhand::app;

namespace {

/// A task whose samples have two tokens: a random number, and the index of the output head.
class Echo final : public tasks::Task {
 public:
  explicit Echo(int heads)
      : heads_(heads), vocabulary_(tasks::WordVocabulary::of_characters("01")) {}
  const tasks::Vocabulary& vocabulary() const override { return vocabulary_; }
  int heads() const override { return heads_; }
  std::int64_t longest() const override { return 2; }
  tasks::Sample sample(Rng& rng, int head) const override {
    return {.tokens = {static_cast<std::int32_t>(rng.next() >> 1), head},
            .targets = {-1, -1},
            .head = head};
  }
  void score(const tasks::Sample&, std::span<const std::int32_t>, tasks::Tally&) const override {}
  std::string_view main_metric() const override { return ""; }
  std::vector<tasks::ReferenceRow> reference(const tasks::Sample&) const override { return {}; }
  std::string answer(std::string_view, int) const override { return {}; }
  std::optional<std::string> check(std::string_view, std::string_view, int) const override {
    return {};
  }

 private:
  int heads_;
  tasks::WordVocabulary vocabulary_;
};

/// Returns for each output head the random numbers in the training samples of steps 1 to `steps`.
std::map<std::int64_t, std::vector<std::int32_t>> numbers(int heads, std::int64_t set,
                                                          std::int64_t steps,
                                                          std::uint64_t seed = 1) {
  const auto batches =
      training_batches(std::make_shared<Echo>(heads), seed, {.sequences = 8, .set = set});
  std::map<std::int64_t, std::vector<std::int32_t>> seen;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const nn::Batch batch = batches(step, 0);
    for (std::size_t i = 0; i < batch.tokens.size(); i += 2) {
      BOOST_REQUIRE(batch.tokens[i + 1] == batch.head);
      seen[batch.head].push_back(batch.tokens[i]);
    }
  }
  return seen;
}

std::set<std::int32_t> distinct(const std::vector<std::int32_t>& list) {
  return {list.begin(), list.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_training_set_no_sample_is_drawn_twice) {
  BOOST_TEST(distinct(numbers(1, 0, 100).at(0)).size() == 800u);
}

BOOST_AUTO_TEST_CASE(samples_of_a_training_set_are_used_equally_often) {
  const auto drawn = numbers(1, 10, 400).at(0);
  std::map<std::int32_t, double> counts;
  for (const std::int32_t number : drawn) counts[number] += 1;
  BOOST_TEST(counts.size() == 10u);
  std::vector<double> list;
  for (const auto& [number, count] : counts) list.push_back(count);
  BOOST_TEST(chi_square_p(list) > 1e-3);
  // Sample j of a training set depends only on the seed and j, not on the step: its random stream
  // is always that of step 0.
  for (std::uint32_t j = 0; j < 10; ++j) {
    Rng rng(1, Purpose::data, 0, j);
    BOOST_TEST(counts.contains(static_cast<std::int32_t>(rng.next() >> 1)));
  }
}

BOOST_AUTO_TEST_CASE(a_training_set_depends_on_seed_and_size) {
  const auto small = distinct(numbers(1, 10, 100).at(0));
  const auto large = distinct(numbers(1, 20, 200).at(0));
  BOOST_TEST(large.size() == 20u);
  // The training set of 10 samples is the beginning of the training set of 20 samples.
  BOOST_TEST(std::ranges::includes(large, small));
  const auto other = distinct(numbers(1, 10, 100, 2).at(0));
  for (const std::int32_t number : other) BOOST_TEST(!small.contains(number));
}

BOOST_AUTO_TEST_CASE(output_heads_get_equal_parts_of_a_training_set) {
  const auto seen = numbers(3, 11, 600);
  BOOST_TEST(distinct(seen.at(0)).size() == 4u);
  BOOST_TEST(distinct(seen.at(1)).size() == 4u);
  BOOST_TEST(distinct(seen.at(2)).size() == 3u);
  for (const std::int32_t number : seen.at(0)) {
    BOOST_REQUIRE(!distinct(seen.at(1)).contains(number));
  }
}

BOOST_AUTO_TEST_CASE(a_batch_depends_only_on_step_and_part) {
  const auto whole = training_batches(std::make_shared<Echo>(1), 1, {.sequences = 8, .set = 1000});
  const auto halves = training_batches(std::make_shared<Echo>(1), 1, {.sequences = 4, .set = 1000});
  whole(1, 0);
  std::vector<std::int32_t> parts = halves(5, 0).tokens;
  const auto second = halves(5, 1).tokens;
  parts.insert(parts.end(), second.begin(), second.end());
  BOOST_TEST(parts == whole(5, 0).tokens);
}

BOOST_AUTO_TEST_CASE(a_training_set_of_an_invalid_size_is_refused) {
  const auto task = std::make_shared<Echo>(3);
  BOOST_CHECK_THROW(training_batches(task, 1, {.sequences = 8, .set = 2}), Error);
  BOOST_CHECK_THROW(training_batches(task, 1, {.sequences = 8, .set = -1}), Error);
  BOOST_CHECK_THROW(training_batches(task, 1, {.sequences = 8, .set = largest_training_set + 1}),
                    Error);
  BOOST_CHECK_NO_THROW(training_batches(task, 1, {.sequences = 8, .set = largest_training_set}));
}

BOOST_AUTO_TEST_CASE(a_batch_of_tokens_holds_whole_sequences_up_to_its_budget) {
  const std::shared_ptr<const tasks::Task> task = make_task("sorting");
  const auto of_tokens = training_batches(task, 1, {.tokens = 500});
  const auto sequences = training_batches(task, 1, {.sequences = 500});
  for (std::int64_t step = 1; step <= 20; ++step) {
    const nn::Batch batch = of_tokens(step, 0), longer = sequences(step, 0);
    const std::size_t count = batch.lengths.size();
    BOOST_REQUIRE(batch.tokens.size() <= 500u);
    BOOST_REQUIRE(batch.tokens.size() + static_cast<std::size_t>(longer.lengths.at(count)) > 500u);
    BOOST_REQUIRE(std::equal(batch.tokens.begin(), batch.tokens.end(), longer.tokens.begin()));
    BOOST_REQUIRE(of_tokens(step, 1).tokens != batch.tokens);
  }
  BOOST_TEST(training_batches(task, 1, {.tokens = 1})(1, 0).lengths.size() == 1u);
}

BOOST_AUTO_TEST_CASE(tokens_that_no_target_needs_are_left_out) {
  const std::shared_ptr<const tasks::Task> task = make_task("sorting");
  const nn::Batch batch = training_batches(task, 1, {.sequences = 50})(1, 0);
  std::size_t end = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    Rng rng(1, Purpose::data, 1, i);
    const tasks::Sample sample = task->sample(rng, 0);
    BOOST_REQUIRE(batch.lengths.at(i) + 1 == std::ssize(sample.tokens));
    end += static_cast<std::size_t>(batch.lengths.at(i));
    BOOST_REQUIRE(batch.targets.at(end - 1) == sample.tokens.back());
  }
  BOOST_TEST(batch.targets.size() == batch.tokens.size());
  BOOST_TEST(end == batch.tokens.size());
}

BOOST_AUTO_TEST_SUITE_END()
