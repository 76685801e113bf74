#include <cmath>
#include <limits>

#include "autograd/gradcheck.h"
#include "autograd/operators.h"
#include "autograd/reduce.h"
#include "autograd/tape.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"
#include "nn/losses.h"
#include "nn/ranks/threads.h"
#include "tests/check.h"
#include "tests/random_tensor.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

// Tests BatchNorm against plain loops, and its running moments in training, checkpoints and
// evaluation. Other tests check its gradients, its parity between backends, and that wrong
// implementations (mutants) are detected.
BOOST_AUTO_TEST_SUITE(batch_norm_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

using Doubles = std::vector<double>;

constexpr std::int64_t channels = 3;
const Doubles gain{0.5, -2, 1.5}, shift{1, 0.25, -3};

/// BatchNorm in plain loops. The running moments are initially 0 and 1.
struct Plain {
  Doubles mean = Doubles(channels, 0.0), variance = Doubles(channels, 1.0);

  static Doubles normalized(const Doubles& x, const Doubles& means, const Doubles& variances) {
    Doubles y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t j = i % channels;
      y[i] = (x[i] - means[j]) / std::sqrt(variances[j] + 1e-5) * gain[j] + shift[j];
    }
    return y;
  }
  Doubles evaluated(const Doubles& x) const { return normalized(x, mean, variance); }
  Doubles trained(const Doubles& x) {
    const double rows = static_cast<double>(x.size() / channels);
    Doubles means(channels, 0.0), variances(channels, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) means[i % channels] += x[i] / rows;
    for (std::size_t i = 0; i < x.size(); ++i) {
      variances[i % channels] += std::pow(x[i] - means[i % channels], 2) / rows;
    }
    for (std::size_t j = 0; j < channels; ++j) {
      mean[j] = 0.9 * mean[j] + 0.1 * means[j];
      variance[j] = 0.9 * variance[j] + 0.1 * variances[j] * rows / (rows - 1);
    }
    return normalized(x, means, variances);
  }
};

void check_near(const Tensor& got, const Doubles& expected) {
  const Doubles values = got.to_doubles();
  BOOST_REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    BOOST_TEST(std::abs(values[i] - expected[i]) < 1e-12);
  }
}

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Parameters parameters{*backend, {DType::f64}, 1};
  BatchNorm norm{Scope(parameters) / "norm", channels};
  std::unique_ptr<Optimizer> optimizer = make_optimizer(parameters, SgdOptions{});

  Fixture() {
    norm.weight.value().assign(gain);
    norm.bias.value().assign(shift);
  }

  /// Runs a training step with learning rate 0, which changes no parameter. Returns y, the output
  /// of the layer for x.
  Tensor step(const Tensor& x, double times = 1) {
    Tape tape;
    Var y, loss;
    {
      const Noise::Drawing training(*parameters.noise(), 0);
      const Recording recording(tape);
      y = norm(x);
      loss = sum(y) * times;
    }
    tape.backward(loss);
    optimizer->prepare(0, 1);
    optimizer->step(loss.value());
    return y.value();
  }
};

/// Linear layers with a BatchNorm between them.
class Net final : public Model {
 public:
  explicit Net(Backend& backend) : Model(backend, 3) {}
  nn::Loss loss(const PlacedBatch& batch) override {
    const Var hidden = activate(Activation::relu, norm(first(batch.features)));
    return squared_error(last(hidden), batch);
  }
  Linear first{scope() / "first", 4, 70};
  BatchNorm norm{scope() / "norm", 70};
  Linear last{scope() / "last", 70, 1};
};

Batch rows_of(std::int64_t step, std::int64_t part) {
  Rng rng(1, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  Batch batch{.features = {{700, 4}}, .values = {{700, 1}}};
  for (int i = 0; i < 4 * 700; ++i) batch.features.values.push_back(rng.normal());
  for (int i = 0; i < 700; ++i) batch.values.values.push_back(rng.normal());
  return batch;
}

/// The values of all parameters and buffers.
std::vector<Doubles> contents_of(const Model& model) {
  std::vector<Doubles> all = values_of(model);
  for (const Buffer& buffer : model.parameters().buffers()) {
    all.push_back(buffer.value().to_doubles());
  }
  return all;
}

TrainerOptions options_of(std::int64_t steps) {
  return {.steps = steps, .parts = 2, .accumulation = 2, .schedule = {.peak = 0.01, .steps = 8}};
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(three_steps_and_the_evaluation_after_each_equal_plain_loops, Fixture) {
  Plain plain;
  const Tensor other = random_tensor(*backend, {5, channels}, DType::f64, 9, 2);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Tensor x = random_tensor(*backend, {2, 3, 2, channels}, DType::f64, seed, 3);
    check_near(step(x), plain.trained(x.to_doubles()));
    check_near(norm.running_mean.value(), plain.mean);
    check_near(norm.running_variance.value(), plain.variance);
    check_near(norm(other).value(), plain.evaluated(other.to_doubles()));
  }
}

BOOST_FIXTURE_TEST_CASE(each_batch_of_a_step_changes_the_running_moments, Fixture) {
  const Noise::Drawing training(*parameters.noise(), 0);
  Plain plain;
  for (const std::uint64_t seed : {1, 2}) {
    const Tensor x = random_tensor(*backend, {6, channels}, DType::f64, seed);
    norm(x);
    plain.trained(x.to_doubles());
  }
  check_near(norm.running_mean.latest(), plain.mean);
  check_near(norm.running_variance.latest(), plain.variance);
}

BOOST_FIXTURE_TEST_CASE(the_gradient_flows_through_the_moments_of_the_batch, Fixture) {
  const Noise::Drawing training(*parameters.noise(), 0);
  const auto layer = [&](std::span<const Var> x) { return norm(x[0]); };
  Rng rng(4, Purpose::test);
  BOOST_TEST(gradcheck(layer, {catalog::normals(rng, {6, channels}, 2, 1)}, *backend).passed());
}

BOOST_FIXTURE_TEST_CASE(a_step_that_is_not_finite_or_cut_short_keeps_the_running_moments, Fixture) {
  const Tensor x = random_tensor(*backend, {4, channels}, DType::f64, 2);
  step(x);
  const Doubles before = norm.running_mean.value().to_doubles();
  step(x, std::numeric_limits<double>::infinity());
  BOOST_TEST((norm.running_mean.value().to_doubles() == before));
  optimizer->go_on();
  {
    const Noise::Drawing training(*parameters.noise(), 0);
    norm(x);
  }
  BOOST_TEST((norm.running_mean.value().to_doubles() == before));
  BOOST_TEST((norm.running_mean.latest().to_doubles() != before));
  parameters.clear_gradients();
  BOOST_TEST((norm.running_mean.latest().to_doubles() == before));
}

BOOST_FIXTURE_TEST_CASE(wrong_batches_and_settings_are_refused, Fixture) {
  const Tensor row = random_tensor(*backend, {1, channels}, DType::f64, 2);
  BOOST_TEST(refusal([&] { norm(row); }) == "accepted");
  BOOST_TEST(refusal([&] { step(row); }) ==
             "layer norm: expected a batch of at least 2 rows in training, got 1");
  BOOST_TEST(refusal([&] {
               norm(random_tensor(*backend, {2, 4}, DType::f64, 2));
             }) == "layer norm: expected an input with the last dimension 3, got the shape [2, 4]");
  BOOST_TEST(refusal([&] { BatchNorm(Scope(parameters) / "b", 1, 1.5); }) ==
             "layer b: expected a momentum from 0 to 1, got 1.5");
  BOOST_TEST(refusal([&] { parameters.add("norm.running_mean", {1}, constant(0), false); }) ==
             "parameters: there is already a parameter or buffer named norm.running_mean");
  BOOST_TEST(refusal([&] { parameters.add_buffer("norm.weight", {1}, 0); }) ==
             "parameters: there is already a parameter or buffer named norm.weight");
}

BOOST_AUTO_TEST_CASE(running_moments_resume_with_the_same_bits_on_other_numbers_of_threads) {
  const auto one = make_cpu_backend({.threads = 1}), three = make_cpu_backend({.threads = 3});
  Net whole(*one), first(*three), second(*one);
  TrainerOptions options = options_of(8);
  Trainer(whole, rows_of, options).run();

  const TemporaryFolder folder;
  options.checkpoints.folder = folder / "checkpoints";
  std::int64_t taken = 0;
  Trainer(first, rows_of, options, {.stop = [&] { return ++taken == 5; }}).run();
  Trainer rest(second, rows_of, options);
  BOOST_TEST(rest.resume_latest());
  BOOST_TEST((contents_of(second) == contents_of(first)));
  rest.run();
  BOOST_TEST((contents_of(second) == contents_of(whole)));
}

BOOST_AUTO_TEST_CASE(several_ranks_are_refused) {
  const auto train = [](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    Net net(*backend);
    Trainer(net, rows_of, options_of(1), {}, ranks);
  };
  BOOST_TEST(refusal([&] { run_ranks(2, train); }) ==
             "training: expected a single rank, because norm.running_mean is computed from the "
             "batches of one rank, got 2");
}

BOOST_AUTO_TEST_SUITE_END()
