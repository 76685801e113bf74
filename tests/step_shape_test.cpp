#include "nn/training/step_shape.h"

#include <algorithm>
#include <numeric>
#include <set>
#include "tests/check.h"

#include "nn/training/recent.h"

BOOST_AUTO_TEST_SUITE(step_shape_test)

using namespace longhand::nn;

// Tests the shape of a batch: the properties that determine which recorded step (CUDA graph) can be
// replayed for it. Shapes are computed on the host.

namespace {

Batch batch_of(std::vector<std::int32_t> lengths, bool weighted = false, std::int64_t groups = 1) {
  Batch batch{.lengths = std::move(lengths), .groups = groups};
  const int tokens = std::accumulate(batch.lengths.begin(), batch.lengths.end(), 0);
  for (int i = 0; i < tokens; ++i) {
    batch.tokens.push_back(i % 5 + 1);
    for (int g = 0; g < groups; ++g) {
      batch.targets.push_back(i % 3);
      if (weighted) batch.weights.push_back(0.5f);
    }
  }
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(shapes_differ_in_everything_that_affects_operations) {
  const Batch batch = batch_of({6, 6, 6});
  const auto same = [&](const Batch& other) { return shape_of(other) == shape_of(batch); };
  BOOST_TEST(same(batch));
  // A shape contains the longest length, rounded up to a power of two: 8 for the lengths 6 and 7,
  // and 16 for 12.
  BOOST_TEST(same(batch_of({5, 6, 7})));
  BOOST_TEST(!same(batch_of({3, 3, 12})));
  BOOST_TEST(!same(batch_of({6, 6})));        // fewer tokens and sequences
  BOOST_TEST(!same(batch_of({6, 6, 6, 0})));  // one more sequence, which is empty
  BOOST_TEST(!same(batch_of({6, 6, 6}, true)));
  BOOST_TEST(!same(batch_of({6, 6, 6}, false, 2)));
  Batch other = batch;
  other.head = 1;
  BOOST_TEST(!same(other));
  other = batch;
  other.tokens[0] = 9;
  other.targets[1] = -1;
  BOOST_TEST(same(other));
  const Batch points{.features = {{2, 3}, std::vector<double>(6)}, .targets = {0, 1}};
  BOOST_TEST((shape_of(points) == shape_of(points)));
  other = points;
  other.features.shape = {3, 2};
  BOOST_TEST((shape_of(other) != shape_of(points)));
  other = points;
  other.values = {{2}, {0.5, 1}};
  BOOST_TEST((shape_of(other) != shape_of(points)));
  other = batch;
  BOOST_CHECK(shape_of({batch, other}, {0, 1}) != StepShape{shape_of(batch)});
}

BOOST_AUTO_TEST_CASE(batches_of_one_length_are_not_padded) {
  const Batch batch = filled_up(batch_of({7, 7, 7}, true));
  BOOST_TEST(batch.filling == 0);
  BOOST_TEST(batch.tokens.size() == 21u);
  BOOST_TEST(batch.real_lengths().size() == 3u);
}

BOOST_AUTO_TEST_CASE(ragged_batches_are_padded_with_uncounted_tokens) {
  const Batch ragged = batch_of({3, 9, 4}, true, 2), full = filled_up(ragged);
  BOOST_TEST(full.tokens.size() == 256u);
  BOOST_TEST(full.filling == 240);
  BOOST_TEST(full.lengths == std::vector<std::int32_t>({3, 9, 4, 0, 0, 0, 0, 240}));
  BOOST_TEST(full.real_lengths().size() == 7u);
  BOOST_TEST(full.targets.size() == 512u);
  BOOST_TEST(full.weights.size() == 512u);
  BOOST_TEST(full.total_weight() == ragged.total_weight());
  BOOST_TEST(std::equal(ragged.tokens.begin(), ragged.tokens.end(), full.tokens.begin()));
  BOOST_TEST(std::equal(ragged.targets.begin(), ragged.targets.end(), full.targets.begin()));
  for (std::size_t i = ragged.targets.size(); i < 512; ++i) BOOST_TEST(full.targets[i] < 0);
  BOOST_TEST(shape_of(full).longest == 16);  // padding is not counted as a sequence
}

BOOST_AUTO_TEST_CASE(ragged_batches_with_floats_or_without_targets_are_not_padded) {
  const auto same = [](const Batch& batch) {
    const Batch full = filled_up(batch);
    return full.filling == 0 && full.rows() == batch.rows() && full.lengths == batch.lengths &&
           full.targets == batch.targets && full.total_weight() == batch.total_weight();
  };
  const Batch ragged = batch_of({3, 9, 4});
  BOOST_TEST(!same(ragged));
  const Floats floats{{16, 2}, std::vector<double>(32)};
  Batch other = ragged;
  other.features = floats;
  BOOST_TEST(same(other));
  other = ragged;
  other.values = floats;
  BOOST_TEST(same(other));
  other = ragged;
  other.named_features["x"] = floats;
  BOOST_TEST(same(other));
  other = ragged;
  other.targets.clear();
  BOOST_TEST(same(other));
  Batch points{.features = floats, .targets = std::vector<std::int32_t>(16)};
  points.named_tokens["t"] = {ragged.tokens, ragged.lengths};
  BOOST_TEST(same(points));
}

BOOST_AUTO_TEST_CASE(padding_is_small_and_produces_few_shapes) {
  std::vector<BatchShape> shapes;
  for (std::int32_t more = 0; more < 4000; more += 37) {
    std::vector<std::int32_t> lengths(100, 200);
    lengths[0] += more;
    const Batch full = filled_up(batch_of(lengths));
    const auto tokens = std::ssize(full.tokens);
    const std::int64_t before = 20000 + more;
    if (more == 0) continue;
    BOOST_TEST_REQUIRE(tokens >= before);
    BOOST_TEST_REQUIRE(tokens < before + before / 32 + 1);
    BOOST_TEST_REQUIRE(std::accumulate(full.lengths.begin(), full.lengths.end(), 0) == tokens);
    BatchShape shape = shape_of(full);
    shape.longest = 0;
    if (std::ranges::count(shapes, shape) == 0) shapes.push_back(shape);
  }
  BOOST_TEST(shapes.size() == 8u);  // the 8 multiples of 512 from 20480 to 24064 tokens
}

BOOST_AUTO_TEST_CASE(the_least_recently_used_shape_is_dropped) {
  Recent<int, std::string> recent(2);
  int made = 0;
  const auto ask = [&](int key) {
    return recent.at(key, [&] { return std::to_string(key) + "/" + std::to_string(++made); });
  };
  BOOST_TEST(ask(1) == "1/1");
  BOOST_TEST(ask(2) == "2/2");
  BOOST_TEST(ask(1) == "1/1");
  BOOST_TEST(ask(3) == "3/3");  // replaces key 2, the least recently used
  BOOST_TEST(ask(1) == "1/1");
  BOOST_TEST(ask(2) == "2/4");  // replaces key 3, the least recently used
  BOOST_TEST(ask(1) == "1/1");
  BOOST_TEST(recent.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
