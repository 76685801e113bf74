// Tests the named inputs of a batch, which are additional tokens or floats that a model finds by
// name. The tests check their sizes and padding, place them on a backend, and train a model.
#include <functional>
#include <utility>

#include "core/error.h"
#include "nn/batch.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/losses.h"
#include "nn/training/step_shape.h"
#include "nn/training/trainer.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(named_inputs_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// A batch with a sequence of two tokens for each of `source_lengths`. Its named inputs are the
/// tokens "source", with sequences of these lengths, and the floats "picture".
Batch batch_of(std::vector<std::int32_t> source_lengths) {
  Batch batch;
  std::int32_t next = 0;
  for (const std::int32_t length : source_lengths) {
    batch.append(std::vector<std::int32_t>{1, 2}, std::vector<std::int32_t>{2, 3});
    std::vector<std::int32_t> source;
    for (int i = 0; i < length; ++i) source.push_back(next++ % 7);
    batch.named_tokens["source"].append(source);
  }
  batch.named_features["picture"] = {{2, 3}, {1, 2, 3, 4, 5, 6}};
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(named_inputs_are_placed_and_found_by_name) {
  const auto backend = make_reference_backend();
  const Batch batch = batch_of({3, 0, 2});
  PlacedBatch placed = place(*backend, batch, DType::f64);
  const Input& source = placed.tokens_of("source");
  BOOST_TEST(source.ids.to_ints() == std::vector<std::int32_t>({0, 1, 2, 3, 4}));
  BOOST_TEST(source.positions.to_ints() == std::vector<std::int32_t>({0, 1, 2, 0, 1}));
  BOOST_TEST(source.segments.count() == 3);
  BOOST_TEST(source.longest == 3);
  BOOST_TEST(placed.features_of("picture").shape() == Shape({2, 3}));
  BOOST_TEST(placed.features_of("picture").to_doubles()[5] == 6.0);
  expect_refusal([&] { placed.tokens_of("sourse"); },
                 "batch: no input of tokens has the name sourse; existing names: source");
  expect_refusal([&] { placed.features_of("source"); },
                 "batch: no input of floats has the name source; existing names: picture");
  Batch other = batch_of({1, 2, 2});
  other.named_features["picture"].values[5] = -6;
  placed.assign(other);
  BOOST_TEST(source.positions.to_ints() == std::vector<std::int32_t>({0, 0, 1, 0, 1}));
  BOOST_TEST(placed.features_of("picture").to_doubles()[5] == -6.0);
  other.named_tokens["source"].append(std::vector<std::int32_t>{1});
  expect_refusal([&] { place(*backend, other, DType::f64); },
                 "batch: source: expected 3 sequences, as in the batch's tokens, got 4");
  other.named_tokens.clear();
  expect_refusal([&] { placed.assign(other); },
                 "batch: expected the same named inputs as in the first batch, got other names");
}

BOOST_AUTO_TEST_CASE(named_inputs_whose_sizes_do_not_fit_are_refused_by_name) {
  const auto backend = make_reference_backend();
  const auto refused = [&](const std::function<void(Floats&, TokenRows&)>& change,
                           const std::string& message) {
    Batch batch = batch_of({3, 0, 2});
    change(batch.named_features["picture"], batch.named_tokens["source"]);
    expect_refusal([&] { place(*backend, batch, DType::f64); }, "batch: " + message);
  };
  refused([](Floats& picture, TokenRows&) { picture.values.pop_back(); },
          "picture: expected 6 values for the shape [2, 3], got 5");
  refused([](Floats& picture, TokenRows&) { picture.values.clear(); },
          "picture: expected 6 values for the shape [2, 3], got 0");
  refused(
      [](Floats& picture, TokenRows&) {
        picture = {Shape(), {1}};
      },
      "picture: expected at least one axis, got none");
  refused([](Floats&, TokenRows& source) { source.tokens.push_back(1); },
          "source: expected lengths that add up to 6 tokens, got 5");
  refused(
      [](Floats&, TokenRows& source) {
        source.lengths = {3, -1, 3};
      },
      "source: expected lengths of at least 0, got -1");
  refused([](Floats&, TokenRows& source) { source.filling = 6; },
          "source: expected 0 or 2 padding tokens (all tokens of the last sequence), got 6");
}

BOOST_AUTO_TEST_CASE(all_sequences_of_a_named_input_may_be_empty) {
  const auto backend = make_reference_backend();
  Parameters parameters(*backend, {DType::f64}, 1);
  const nn::Embedding embedding(Scope(parameters) / "embedding", 7, 4, normal(1));
  const Linear linear(Scope(parameters) / "linear", 4, 3);
  const PlacedBatch placed = place(*backend, batch_of({0, 0, 0}), DType::f64);
  const Input& source = placed.tokens_of("source");
  BOOST_TEST(source.longest == 0);
  BOOST_TEST(source.segments.count() == 3);
  BOOST_TEST(linear(embedding(source.ids, DType::f64)).shape() == Shape({0, 3}));
}

BOOST_AUTO_TEST_CASE(an_input_without_a_row_is_refused_by_name_where_it_is_read) {
  const auto backend = make_reference_backend();
  Batch batch{.features = {{2, 1}, {1, 2}}, .targets = {0, 1}};
  batch.named_features["x"] = {};
  batch.named_tokens["t"] = {};
  const PlacedBatch placed = place(*backend, batch, DType::f64);
  expect_refusal([&] { placed.features_of("x"); },
                 "batch: x: expected at least one row of floats, got [0]");
  expect_refusal([&] { placed.tokens_of("t"); },
                 "batch: t: expected at least one sequence of tokens, got none");
}

BOOST_AUTO_TEST_CASE(batches_whose_sizes_do_not_fit_are_refused) {
  const auto refused = [](const std::function<void(Batch&)>& change, const std::string& message) {
    Batch batch;
    batch.append(std::vector<std::int32_t>{1, 2, 3}, std::vector<std::int32_t>{2, 3, 4});
    batch.weights = {1, 1, 1};
    BOOST_TEST(batch.total_weight() == 3);
    change(batch);
    expect_refusal([&] { (void)batch.total_weight(); }, "batch: " + message);
    expect_refusal([&] { place(*make_reference_backend(), batch, DType::f64); },
                   "batch: " + message);
  };
  refused([](Batch& batch) { batch.targets.pop_back(); },
          "targets: expected entries for 3 rows (1 per row), got 2");
  refused([](Batch& batch) { batch.weights.pop_back(); },
          "weights: expected entries for 3 rows (1 per row), got 2");
  refused([](Batch& batch) { batch.positions = {0}; },
          "positions: expected entries for 3 rows (1 per row), got 1");
  refused([](Batch& batch) { batch.groups = 0; },
          "groups (target classes per row): expected at least 1, got 0");
  refused([](Batch& batch) { batch.lengths = {2'000'000'000}; },
          "tokens: expected lengths that add up to 3 tokens, got 2000000000");
  refused(
      [](Batch& batch) {
        batch.features = {{2, 1}, {1, 2}};
      },
      "features: expected 3 rows, got [2, 1]");
  refused(
      [](Batch& batch) {
        batch = {};
        batch.named_features["x"] = {{1}, {1}};
      },
      "expected tokens, features, targets or values, which determine the number of rows, got only "
      "named inputs");
}

BOOST_AUTO_TEST_CASE(named_inputs_belong_to_the_shape_of_a_step) {
  const Batch batch = batch_of({3, 0, 2});
  BOOST_CHECK(shape_of(batch) == shape_of(batch_of({3, 1, 1})));
  // Batches differ in shape if "source" has 6 tokens instead of 5.
  BOOST_CHECK(shape_of(batch) != shape_of(batch_of({3, 0, 3})));
  // Batches differ in shape if the longest sequence has 5 tokens instead of 3.
  BOOST_CHECK(shape_of(batch) != shape_of(batch_of({5, 0, 0})));
  Batch other = batch;
  other.named_features["picture"].shape = {3, 2};
  BOOST_CHECK(shape_of(batch) != shape_of(other));
  other = batch;
  other.named_features.clear();
  BOOST_CHECK(shape_of(batch) != shape_of(other));
}

BOOST_AUTO_TEST_CASE(named_inputs_are_padded_together_with_the_tokens) {
  const auto backend = make_reference_backend();
  const auto without_floats = [](std::vector<std::int32_t> source_lengths) {
    Batch batch = batch_of(std::move(source_lengths));
    batch.named_features.clear();
    return batch;
  };
  const Batch even = filled_up(without_floats({2, 2, 2}));
  BOOST_TEST(even.filling == 0);
  BOOST_TEST(even.named_tokens.at("source").tokens.size() == 6u);
  const Batch full = filled_up(without_floats({3, 0, 2}));
  const TokenRows& source = full.named_tokens.at("source");
  BOOST_TEST(full.lengths.size() == 8u);
  BOOST_TEST(source.lengths == std::vector<std::int32_t>({3, 0, 2, 0, 0, 0, 0, 251}));
  BOOST_TEST(source.filling == 251);
  // A model may expect a row of floats for each token or sequence, so a batch with named floats is
  // not padded.
  BOOST_TEST(filled_up(batch_of({3, 0, 2})).lengths.size() == 3u);
  // `longest` is the largest position id + 1. All 251 padding tokens have the position id 0.
  BOOST_TEST(place(*backend, full, DType::f64).tokens_of("source").longest == 3);
}

namespace {

/// A model that learns the class floor(x + 2 t) from the named floats "x" and the named tokens "t".
class Sum final : public Model {
 public:
  explicit Sum(Backend& backend) : Model(backend, 1) {}
  Loss loss(const PlacedBatch& batch) override {
    const Var both = embedding(batch.tokens_of("t").ids);
    return cross_entropy(last(first(batch.features_of("x"), {.residual = both})), batch);
  }

 private:
  nn::Embedding embedding{scope() / "embedding", 2, 8, normal(0.5)};
  Linear first{scope() / "first", 1, 8}, last{scope() / "last", 8, 4};
};

Batch sums(Rng& rng) {
  Batch batch;
  TokenRows& t = batch.named_tokens["t"];
  Floats& x = batch.named_features["x"];
  x.shape = {64, 1};
  for (int i = 0; i < 64; ++i) {
    const auto token = static_cast<std::int32_t>(rng.below(2));
    const bool is_high = rng.chance(0.5);
    t.append({&token, 1});
    x.values.push_back(is_high ? 1.5 : 0.5);
    batch.targets.push_back(2 * token + is_high);
  }
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_learns_from_named_inputs) {
  const auto backend = make_cpu_backend();
  Sum model(*backend);
  Trainer(model, drawn_batches(2, sums), {.steps = 200, .schedule = {.peak = 0.05}}).run();
  Rng rng(3);
  BOOST_TEST(model.loss_of(sums(rng)).hits.item() == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
