#include "autograd/linear_cross_entropy.h"

#include <cmath>
#include "tests/check.h"

#include "autograd/loss.h"
#include "autograd/matmul.h"
#include "autograd/tolerance.h"
#include "nn/losses.h"
#include "nn/mixers/softmax.h"
#include "nn/models/decoder.h"
#include "tests/composed_twin.h"
#include "tests/distance.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(linear_cross_entropy_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// Returns the rows of x whose numbers are listed in `rows`, or x itself if `rows` is empty.
Var counted(const Var& x, const Tensor& rows) {
  if (!rows) return x;
  std::vector<double> choose(static_cast<std::size_t>(rows.size() * x.value().rows()));
  const std::vector<std::int32_t> places = rows.to_ints();
  for (std::size_t i = 0; i < places.size(); ++i) {
    choose[i * static_cast<std::size_t>(x.value().rows()) + static_cast<std::size_t>(places[i])] =
        1;
  }
  return matmul(
      Tensor::from(x.backend(), {rows.size(), x.value().rows()}, x.value().dtype(), choose), x);
}

struct Step {
  double loss, hits;
  std::vector<std::vector<double>> gradients;
  std::int64_t peak;
};

/// Computes the loss and gradients of a model with a large vocabulary. If `plain`, the loss is
/// computed from the logits of all rows; otherwise by the model's own function loss().
Step step(Backend& backend, const Batch& batch, bool plain, DType type = DType::f32) {
  DecoderConfig config{.vocabulary = many_classes,
                       .width = 16,
                       .layers = 1,
                       .mixers = {},
                       .inner = 16,
                       .tied = true};
  config.mixers = {{heads_of<SoftmaxHeads>(2, 8)}};
  Decoder model(backend, config, 9, Storage{.type = type});
  const PlacedBatch placed = place(backend, batch, type);
  model.prepare(placed.input.longest);
  backend.memory().reset_peak();
  Tape tape;
  const Loss loss = recorded(tape, [&] {
    return plain ? cross_entropy(model.logits(model.features(placed.input)), placed,
                                 {.consume_logits = true})
                 : model.loss(placed);
  });
  // The backward pass starts with the gradient 1/4, as for one of four batches of a step.
  const double share[] = {0.25};
  tape.backward(loss.value, Tensor::from(backend, {1}, type, share));
  Step result{.loss = loss.value.value().item(),
              .hits = loss.hits.item(),
              .gradients = {},
              .peak = static_cast<std::int64_t>(backend.memory().use().peak)};
  for (const Parameter& p : model.parameters().all()) {
    result.gradients.push_back(p.var().grad().to_doubles());
  }
  return result;
}

Batch batch_of(int sequences, int length, int every, bool weighted) {
  Batch batch{.tokens = {}, .lengths = {}, .targets = {}, .lists_counted = true};
  Rng rng(3, Purpose::test);
  for (int s = 0; s < sequences; ++s) {
    std::vector<std::int32_t> tokens, targets;
    for (int i = 0; i < length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(rng.below(many_classes)));
      targets.push_back(i % every == every - 1 ? static_cast<std::int32_t>(rng.below(many_classes))
                                               : -1);
      if (weighted) batch.weights.push_back(static_cast<float>(rng.uniform()));
    }
    batch.append(tokens, targets);
  }
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_fused_loss_has_the_gradients_of_a_product_and_a_plain_loss) {
  check_composed(
      "linear_cross_entropy", [](const catalog::Call& c) -> std::vector<catalog::Output> {
        const Tensor hits(c.backend(), {1}, master_type(c.activations()));
        const Var x = counted(c.in("x"), c.maybe("rows").value());
        const Var loss = cross_entropy(
            matmul(x, c.in("w"), {.transpose_b = true}), c.in("targets").value(),
            {.groups = c.integer("groups"), .weights = c.maybe("weights").value(), .hits = hits});
        return {{"loss", loss}, {"hits", hits}};
      });
}

BOOST_AUTO_TEST_CASE(a_model_with_many_classes_has_the_gradients_of_the_plain_loss) {
  for (const bool weighted : {false, true}) {
    for (const int every : {1, 5}) {  // targets in all rows, or in every fifth row only
      const Batch batch = batch_of(3, 210, every, weighted);
      BOOST_TEST(batch.counted_rows().empty() == (every == 1));
      for (const auto& [backend, type, tolerance] :
           {std::tuple{make_reference_backend({.math = Math::exact}), DType::f64, 1e-12},
            std::tuple{make_cpu_backend({.math = Math::exact}), DType::f32, 1e-5}}) {
        // Skips a slow case that tests no further code.
        if (type == DType::f64 && every == 1) continue;
        const Step plain = step(*backend, batch, true, type);
        const Step ours = step(*backend, batch, false, type);
        BOOST_TEST_CONTEXT(backend->name() << " " << weighted << " " << every) {
          BOOST_TEST(ours.loss == plain.loss, boost::test_tools::tolerance(tolerance));
          BOOST_TEST(ours.hits == plain.hits, boost::test_tools::tolerance(1e-5));
          for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
            BOOST_TEST(distance(plain.gradients[i], ours.gradients[i]) <= tolerance);
          }
          BOOST_TEST(ours.peak < plain.peak);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_has_the_same_bits_on_any_number_of_threads) {
  const Batch batch = batch_of(2, 300, 1, false);
  const auto one = make_cpu_backend({.threads = 1}), three = make_cpu_backend({.threads = 3});
  const Step alone = step(*one, batch, false), together = step(*three, batch, false);
  BOOST_TEST(alone.loss == together.loss);
  BOOST_TEST((alone.gradients == together.gradients));
}

BOOST_AUTO_TEST_CASE(rows_with_targets_are_listed_if_they_are_few) {
  Batch batch{.tokens = std::vector<std::int32_t>(100, 1),
              .lengths = {100},
              .targets = std::vector<std::int32_t>(200, -1),
              .groups = 2};
  batch.targets[6] = 3;  // each row has two entries; those of row 3 are 6 and 7
  batch.targets[7] = 4;
  batch.targets[199] = 0;  // in row 99, only the second group has a target
  BOOST_TEST(batch.counted_rows().empty());
  batch.lists_counted = true;
  std::vector<std::int32_t> expected(16, -1);
  expected[0] = 3;
  expected[1] = 99;
  BOOST_TEST(batch.counted_rows() == expected, boost::test_tools::per_element());

  const auto backend = make_cpu_backend();
  const PlacedBatch placed = place(*backend, batch, DType::f32);
  BOOST_TEST(placed.counted.rows.to_ints()[1] == 99);
  BOOST_TEST(placed.counted.rows.to_ints()[2] == 0);
  const std::vector<std::int32_t> wanted = placed.counted.targets.to_ints();
  BOOST_TEST(wanted.size() == 32u);
  BOOST_TEST(wanted[0] == 3);
  BOOST_TEST(wanted[1] == 4);
  BOOST_TEST(wanted[2] == -1);
  BOOST_TEST(wanted[3] == 0);
  BOOST_TEST(std::ranges::count(wanted, -1) == 29);

  // If more than half of the rows have a target, counted_rows() lists none.
  for (std::size_t i = 0; i < 110; ++i) batch.targets[i] = 1;
  BOOST_TEST(batch.counted_rows().empty());
  std::ranges::fill(batch.targets, -1);
  BOOST_TEST(batch.counted_rows().empty());
}

BOOST_AUTO_TEST_SUITE_END()
