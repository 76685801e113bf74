#include <boost/test/data/test_case.hpp>
#include <cmath>
#include <map>

#include "core/contract/elementwise.h"
#include "core/error.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "nn/losses.h"
#include "tests/check.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(learning_test)

using namespace longhand;
using namespace longhand::nn;
namespace data = boost::unit_test::data;

// Tests the training of models that users write themselves, with Adam, SGD and Muon. The models
// learn to predict floats or classes. Other tests cover dropout and frozen layers.

namespace {

/// A network of two linear layers with dropout between them.
class Net final : public Model {
 public:
  explicit Net(Backend& backend, double rate = 0, std::int64_t in = 1, std::int64_t out = 1)
      : Model(backend, 3),
        first(scope() / "first", in, 32),
        drop(scope(), rate),
        second(scope() / "second", 32, out) {}

  Var operator()(const Var& x) const { return second(drop(first(x, {.f = Activation::tanh}))); }
  nn::Loss loss(const PlacedBatch& batch) override {
    const Var y = (*this)(batch.features);
    return batch.targets ? cross_entropy(y, batch) : squared_error(y, batch);
  }

  Linear first;
  nn::Dropout drop;
  Linear second;
};

/// A batch of 64 random numbers x as features, with sin(2 x) as values to predict.
Batch curve(std::int64_t step, std::int64_t part) {
  Rng rng(1, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  Batch batch{.features = {{64, 1}}, .values = {{64, 1}}};
  for (int i = 0; i < 64; ++i) {
    const double x = 4 * rng.uniform() - 2;
    batch.features.values.push_back(x);
    batch.values.values.push_back(std::sin(2 * x));
  }
  return batch;
}

/// 64 random pairs of numbers as features. The target is 1 if both have the same sign, otherwise 0.
Batch signs(std::int64_t step, std::int64_t) {
  Rng rng(2, Purpose::data, static_cast<std::uint64_t>(step));
  Batch batch{.features = {{64, 2}}};
  for (int i = 0; i < 64; ++i) {
    const double x = 2 * rng.uniform() - 1, y = 2 * rng.uniform() - 1;
    batch.features.values.insert(batch.features.values.end(), {x, y});
    batch.targets.push_back(x * y > 0);
  }
  return batch;
}

struct Way {
  std::string name;
  OptimizerOptions optimizer;
  double rate;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }
const std::vector<Way> ways{{"adam", AdamOptions{.decay = 1e-4}, 0.02},
                            {"sgd", SgdOptions{.momentum = 0.9, .clip = 1}, 0.1},
                            {"muon", MuonOptions{.adam = {.decay = 1e-4}}, 0.02}};

TrainerOptions options(const Way& way, std::int64_t steps) {
  return {.steps = steps, .schedule = {.peak = way.rate}, .optimizer = way.optimizer};
}

}  // namespace

BOOST_DATA_TEST_CASE(floats_are_learned_from_floats, data::make(ways), way) {
  const auto backend = make_cpu_backend({.threads = 2});
  Net net(*backend);
  // For comparison, the mean square of the values sin(2 x), the loss of a network that predicts 0,
  // is about 1/2.
  BOOST_TEST(train_losses(net, curve, options(way, 600)).back() < 0.02);
}

BOOST_DATA_TEST_CASE(choices_are_learned_from_floats, data::make(ways), way) {
  const auto backend = make_cpu_backend({.threads = 2});
  Net net(*backend, 0, 2, 2);
  // For comparison, guessing one of the two classes has the loss ln 2 = 0.69.
  BOOST_TEST(train_losses(net, signs, options(way, 600)).back() < 0.3);
}

BOOST_DATA_TEST_CASE(a_resumed_run_has_the_same_bits_as_an_uninterrupted_one,
                     data::make(ways) * data::make({0.0, 0.25}), way, rate) {
  const auto backend = make_cpu_backend({.threads = 1}), other = make_cpu_backend({.threads = 3});
  TrainerOptions o = options(way, 30);
  o.accumulation = 2;
  o.schedule.curve = Schedule::Curve::cosine;
  Net whole(*backend, rate);
  o.groups = {{.parameters = whole.parameters().under("first"), .rate = 0.5}};
  Trainer(whole, curve, o).run();

  const TemporaryFolder folder;
  o.checkpoints.folder = folder / "checkpoints";
  Net first(*backend, rate);
  o.groups = {{.parameters = first.parameters().under("first"), .rate = 0.5}};
  std::int64_t taken = 0;
  Trainer(first, curve, o, {.stop = [&] { return ++taken == 13; }}).run();
  Net second(*other, rate);
  o.groups = {{.parameters = second.parameters().under("first"), .rate = 0.5}};
  Trainer trainer(second, curve, o);
  BOOST_TEST(trainer.resume_latest());
  BOOST_TEST(trainer.step() == 13);
  trainer.run();
  BOOST_CHECK(values_of(second) == values_of(whole));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_optimizer_is_refused) {
  const auto backend = make_cpu_backend({.threads = 1});
  const TemporaryFolder folder;
  TrainerOptions o = options(ways[1], 1);
  o.checkpoints.folder = folder / "checkpoints";
  Net net(*backend);
  Trainer(net, curve, o).run();
  o.optimizer = AdamOptions{};
  Trainer adam(net, curve, o);
  BOOST_TEST(contains(refusal([&] { adam.resume_latest(); }),
                      ": expected the state of the optimizer adam, got the state of sgd"));
}

BOOST_AUTO_TEST_CASE(frozen_layers_do_not_change_and_have_no_backward_pass) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto products = [&](bool frozen) {
    Net net(*backend);
    TrainerOptions o = options(ways[0], 1);
    o.schedule.curve = Schedule::Curve::constant;
    if (frozen) o.groups = {{.parameters = net.parameters().under("first"), .frozen = true}};
    Trainer trainer(net, curve, o);
    const auto before = values_of(net);
    std::map<std::string, int, std::less<>> count;
    backend->observer = [&](std::string_view name) { ++count[std::string(name)]; };
    trainer.run();
    backend->observer = {};
    const auto after = values_of(net);
    BOOST_TEST((after[0] == before[0]) == frozen);
    BOOST_TEST((after[1] == before[1]) == frozen);
    BOOST_TEST((after[2] != before[2]));
    return count["matmul"];
  };
  // The forward pass computes two matrix products. The backward pass computes three: for the
  // gradients of the second layer's weight, of the first layer's output and of the first layer's
  // weight. It omits the last two if the first layer is frozen.
  BOOST_TEST(products(false) == 5);
  BOOST_TEST(products(true) == 3);
}

BOOST_AUTO_TEST_CASE(dropout_is_off_in_evaluation_and_drawn_anew_in_training) {
  const auto backend = make_cpu_backend({.threads = 1});
  Net net(*backend, 0.5), plain(*backend);
  const Batch batch = curve(1, 0);
  const double evaluated = net.loss_of(batch).value.value().item();
  BOOST_TEST(evaluated == plain.loss_of(batch).value.value().item());

  // With learning rate 0 nothing is trained, so only the random numbers of dropout make the losses
  // differ.
  const auto losses = [&](Model& model, const BatchSource& source, std::int64_t parts) {
    return train_losses(model, source,
                        {.steps = 3, .accumulation = parts, .schedule = {.peak = 0}});
  };
  const auto same = [&](std::int64_t, std::int64_t) { return batch; };
  const auto drawn = losses(net, same, 1);
  BOOST_TEST(drawn[0] != evaluated);
  BOOST_TEST(drawn[0] != drawn[1]);
  BOOST_TEST(drawn[1] != drawn[2]);
  BOOST_TEST(losses(net, same, 1) == drawn);
  // A step with two parts draws new random numbers for its second part, so dropout zeroes other
  // entries there and the loss differs.
  BOOST_TEST(losses(net, same, 2)[0] != drawn[0]);
  BOOST_TEST(net.loss_of(batch).value.value().item() == evaluated);
}

BOOST_AUTO_TEST_CASE(layers_draw_independently_and_drop_their_share) {
  const auto backend = make_cpu_backend({.threads = 1});
  Parameters parameters(*backend, {DType::f32}, 7);
  const nn::Dropout one(parameters, 0.25), two(parameters, 0.25);
  const Tensor x(*backend, {10000}, DType::f32);
  (*backend)(Fill{.value = 3, .y = x});
  BOOST_TEST(one(x).value().same_memory(x));
  const Noise::Drawing drawing(*parameters.noise(), 0);
  const auto a = one(x).value().to_doubles(), b = two(x).value().to_doubles();
  BOOST_TEST((a != b));
  const auto dropped = std::ranges::count(a, 0.0);
  BOOST_TEST(std::abs(static_cast<double>(dropped) - 2500) < 5 * std::sqrt(2500 * 0.75));
  BOOST_TEST(std::ranges::count(a, 4.0) == 10000 - dropped);
  BOOST_CHECK_THROW(nn::Dropout(parameters, 1), Error);
}

BOOST_AUTO_TEST_CASE(sequences_are_appended_and_drawn_by_step_and_part) {
  Batch batch;
  batch.append(std::array{3, 1, 4}, std::array{1, 4, -1});
  batch.append(std::array{5}, std::array{9});
  BOOST_TEST(batch.lengths == (std::vector<std::int32_t>{3, 1}), boost::test_tools::per_element());
  BOOST_TEST(batch.rows() == 4);
  BOOST_TEST(batch.total_weight() == 3);
  BOOST_CHECK_THROW(batch.append(std::array{1, 2}, std::array{1}), Error);

  const BatchSource source = drawn_batches(5, [](Rng& rng) {
    return Batch{.features = {{1}, {rng.uniform()}}};
  });
  const auto drawn = [&](std::int64_t step, std::int64_t part) {
    return source(step, part).features.values.front();
  };
  BOOST_TEST(drawn(1, 0) == drawn(1, 0));
  BOOST_TEST(drawn(1, 0) != drawn(2, 0));
  BOOST_TEST(drawn(1, 0) != drawn(1, 1));
  expect_refusal([&] { drawn(1, std::int64_t{1} << 32); },
                 "batch index from 0 to 4294967295, got step 1 and batch index 4294967296");
  expect_refusal([&] { drawn(1, -1); }, "got step 1 and batch index -1");
}

BOOST_AUTO_TEST_CASE(settings_without_effect_are_refused) {
  const auto backend = make_cpu_backend({.threads = 1});
  Net net(*backend);
  const auto refused = [](const auto& make, const std::string& words) {
    BOOST_TEST(contains(refusal(make), words));
  };
  refused([&] { Trainer(net, curve, {}); }, "expected a number of steps");
  refused([&] { net.parameters().under("firs"); },
          "expected parameters in the scope firs, got none");
  refused(
      [&] {
        net.loss_of(Batch{.features = {{2, 1}, {1, 2}}});
      },
      "expected a batch with values");
  refused(
      [&] {
        net.loss_of(Batch{.features = {{2, 1}, {1, 2}}, .values = {{3, 1}, {1, 2, 3}}});
      },
      "batch: values: expected 2 rows, got [3, 1]");
  refused(
      [&] {
        net.loss_of(Batch{.features = {{2, 1}, {1, 2}}, .values = {{2}, {1, 2}}});
      },
      "squared_error: targets: expected [2, 1], the shape of x, got [2]");
  for (const Parameter& p : net.parameters().all()) p.freeze();
  refused([&] { Trainer(net, curve, {.steps = 1}); }, "a parameter that is not frozen, got none");
}

BOOST_AUTO_TEST_SUITE_END()
