#include "apps/run/probe.h"

#include "tests/check.h"

#include "apps/run/config.h"
#include "core/contract/elementwise.h"
#include "tests/make_task.h"
#include "tests/reference_fixture.h"
#include "tests/refusal.h"

namespace probe_test {

using namespace longhand;
using namespace longhand::app;

/// A sorting model whose blocks add nothing to the residual stream. At every layer, the residual
/// stream of a token is therefore the token's embedding.
struct Rigged : Reference {
  static constexpr std::int64_t numbers = 3, width = 8;
  std::unique_ptr<tasks::Task> task;
  std::unique_ptr<nn::Decoder> model;

  Rigged() {
    task = make_task("sorting", {{"numbers", "3"}, {"length", "4"}});
    const Config config = [] {
      Config c("sorting");
      c.set("model.width", "8");
      c.set("model.layers", "2");
      c.set("model.heads", "softmax:2");
      return c;
    }();
    model = std::make_unique<nn::Decoder>(run, config.model(*task), 1, nn::Storage{DType::f64});
    for (const nn::Parameter& p : model->parameters().all()) {
      if (p.name().starts_with("blocks.")) run(Fill{.value = 0, .y = p.value()});
    }
    Values unit(static_cast<std::size_t>(task->vocabulary().size() * width));
    for (std::int64_t i = 0; i < task->vocabulary().size(); ++i)
      unit[static_cast<std::size_t>(i * width + i)] = 1;
    put("output.weight", unit);
  }
  void put(const std::string& name, const Values& values) const {
    const Tensor to = model->parameters().find(name)->value();
    run(Copy{.x = f64(to.shape(), values), .y = to});
  }
  /// Sets the embedding of each token. The rows of the output layer (the decoder basis) are unit
  /// vectors, so the product of an embedding with one of them is an entry of the embedding.
  void embed(const std::vector<Values>& rows) const {
    Values all;
    for (Values row : rows) {
      row.resize(static_cast<std::size_t>(width));
      all.insert(all.end(), row.begin(), row.end());
    }
    put("embedding.weight", all);
  }
};

constexpr std::int64_t samples = 50;

}  // namespace probe_test

BOOST_FIXTURE_TEST_SUITE(probe_test, Rigged)

BOOST_AUTO_TEST_CASE(cosines_of_orthogonal_and_parallel_vectors_are_right) {
  const Tensor axes = f64({3, 4}, {2, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 0});
  BOOST_TEST(cosines_within(axes).largest == 0);
  BOOST_TEST(cosines_between(axes, axes).largest == 1);
  BOOST_TEST(cosines_between(axes, axes).mean == 1.0 / 3);
  const Tensor pair = f64({2, 2}, {1, 0, -3, 4});
  BOOST_TEST(std::abs(cosines_within(pair).mean - 0.6) < 1e-14);
  BOOST_TEST(std::abs(cosines_within(pair).root_mean_square - 0.6) < 1e-14);
  BOOST_TEST(std::abs(spread_of_lengths(pair) - 2.0 / 3) < 1e-14);  // the rows have lengths 1 and 5
  BOOST_TEST(spread_of_lengths(f64({2, 2}, {1, 0, 0, 1})) == 0);
}

BOOST_AUTO_TEST_CASE(projections_are_products_with_the_rows_of_both_bases) {
  embed({{}, {0, 1, 2}, {3, 4}, {0, 0, 0, 5}, {6}, {}});
  const Bases bases = bases_of(*model);
  const nn::Batch batch{.tokens = {2, 1, 4}, .lengths = {3}};
  const auto all = project(*model, batch, bases);
  BOOST_TEST(all.size() == 4u);  // before and after the MLP of each of two layers
  for (const Projection& p : all) {
    check_values(p.decoder, {3, 4, 0, 0, 0, 0, /**/ 0, 1, 2, 0, 0, 0, /**/ 6, 0, 0, 0, 0, 0});
    check_values(p.encoder, {0, 4, 25, 0, 18, 0, /**/ 0, 5, 4, 0, 0, 0, /**/ 0, 0, 18, 0, 36, 0});
  }
  BOOST_TEST(all[1].layer == 0);
  BOOST_TEST((all[1].place == StreamPlace::after_mlp));
}

// sorting_mechanisms() multiplies a token's residual stream by the rows of the output layer, one
// row per number, and counts hits of two mechanisms:
//   - At the delimiter ⊥, the row of the smallest input number should have the largest product. In
//   this test the row of 1 always has it, which is a hit if the smallest number is 1.
//   - At an output number, its own row and the row of the next greater input number should have the
//   two largest products. In this test, the rows of 1 and 2 have them at both 1 and 2. This is a
//   hit only at 1, and only if the input contains 2.
BOOST_AUTO_TEST_CASE(mechanisms_are_counted) {
  embed({{}, {0, 1, 0.5}, {0, 0.5, 1}, {0, 0, 0, 1}, {0, 1}, {}});
  const Mechanisms counts = sorting_mechanisms(*model, *task, {.samples = samples, .seed = 4});
  std::int64_t minimum = 0, successor = 0, followed = 0;
  for (std::uint32_t i = 0; i < samples; ++i) {
    Rng rng(4, Purpose::evaluation, 0, i);
    const tasks::Sample sample = task->sample(rng, 0);
    const std::vector<std::int32_t> output(sample.tokens.begin() + 5, sample.tokens.end());
    minimum += output[0] == 1;
    const auto has = [&](int number) { return std::ranges::count(output, number); };
    const int greatest = output.back();
    followed += 4 - has(greatest);
    successor += has(2) > 0 ? has(1) : 0;
  }
  BOOST_TEST(counts.minimum_count == samples);
  BOOST_TEST(counts.minimum_hits == minimum);
  BOOST_TEST(counts.successor_count == followed);
  BOOST_TEST(counts.successor_hits == successor);
  BOOST_TEST(successor > 0);
  BOOST_TEST(successor < followed);
}

BOOST_AUTO_TEST_CASE(runs_that_cannot_be_probed_are_refused) {
  const auto other = make_task("increment");
  BOOST_CHECK_THROW(sorting_mechanisms(*model, *other, {}), Error);
  const std::vector<std::int32_t> tokens{1, 2, 4};
  BOOST_CHECK_THROW(projection_pictures(*model, *task, tokens, 3), Error);
  BOOST_TEST(contains(projection_pictures(*model, *task, tokens, 2), "after the MLP"));
}

BOOST_AUTO_TEST_SUITE_END()
