#include "nn/training/optimizer.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

#include "autograd/operators.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(optimizer_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Parameters parameters{*backend, {DType::f64}, 1};
  Parameter w = parameters.add("w", {2, 2}, constant(1), true);
  Parameter b = parameters.add("b", {2}, constant(1), false);
  void send(const Parameter& parameter, std::vector<double> gradient) const {
    parameter.var().sink().add(
        Tensor::from(*backend, parameter.value().shape(), DType::f64, gradient));
  }
  /// Executes a step of the optimizer and returns the norm of the gradients.
  double take(Optimizer& optimizer, double rate, std::int64_t step, double loss = 1) const {
    optimizer.prepare(rate, step);
    optimizer.step(Tensor::from(*backend, {1}, DType::f64, std::vector<double>{loss}));
    return optimizer.norm().item();
  }
};
const auto close = boost::test_tools::tolerance(1e-12);

}  // namespace

BOOST_FIXTURE_TEST_CASE(weight_decay_applies_to_matrices_and_not_to_biases, Fixture) {
  AdamOptimizer adam(parameters, {.epsilon = 0, .decay = 0.5});
  send(w, {2, 2, 2, 2});
  send(b, {2, 2});
  BOOST_TEST(take(adam, 0.1, 1) == std::sqrt(24.0), close);
  // AdamW first multiplies the weights by 1 - rate * decay. The first step of Adam then subtracts
  // rate * sign(gradient).
  BOOST_TEST(w.value().to_doubles()[3] == 1 * (1 - 0.1 * 0.5) - 0.1, close);
  BOOST_TEST(b.value().to_doubles()[1] == 1 - 0.1, close);
  BOOST_TEST(!w.var().grad());
}

BOOST_FIXTURE_TEST_CASE(clipping_scales_all_gradients_by_one_factor, Fixture) {
  AdamOptimizer adam(parameters, {.beta1 = 0, .beta2 = 0, .epsilon = 1, .clip = 1});
  send(w, {3, 0, 0, 0});
  send(b, {0, 4});
  BOOST_TEST(take(adam, 1, 1) == 5.0, close);
  // Clipping divides the gradient 3 by the norm 5, which gives g = 3/5. With rate 1 and epsilon 1,
  // Adam changes the weight from 1 to 1 - g / (g + 1).
  BOOST_TEST(w.value().to_doubles()[0] == 1 - 0.6 / 1.6, close);
  BOOST_TEST(b.value().to_doubles()[1] == 1 - 0.8 / 1.8, close);
}

BOOST_FIXTURE_TEST_CASE(parameters_that_no_loss_depends_on_do_not_change, Fixture) {
  AdamOptimizer adam(parameters, {.decay = 0.1});
  for (int step = 1; step <= 2; ++step) {
    send(b, {1, 1});
    take(adam, 0.1, step);
  }
  BOOST_TEST(w.value().to_doubles() == std::vector<double>(4, 1.0));
  BOOST_CHECK_THROW(take(adam, 0.1, 3), Error);
}

BOOST_FIXTURE_TEST_CASE(a_non_finite_loss_or_norm_stops_the_optimizer, Fixture) {
  const double infinity = std::numeric_limits<double>::infinity();
  AdamOptimizer adam(parameters, {.decay = 0.1});
  const auto numbers = [&] {
    std::vector<double> all = w.value().to_doubles();
    for (const auto& [name, tensor] : adam.state()) {
      for (const double value : tensor.to_doubles()) all.push_back(value);
    }
    return all;
  };
  const auto moves = [&](double gradient, double loss) {
    const std::vector<double> before = numbers();
    send(w, {gradient, 1, 1, 1});
    take(adam, 0.1, 1, loss);
    BOOST_TEST(!w.var().grad());
    return numbers() != before;
  };
  BOOST_TEST(moves(1, 1));
  BOOST_TEST(!moves(1, infinity));
  BOOST_TEST(!moves(1, 1));
  adam.go_on();
  BOOST_TEST(moves(1, 1));
  BOOST_TEST(!moves(infinity, 1));
  BOOST_TEST(!moves(1, 1));
}

BOOST_FIXTURE_TEST_CASE(frozen_parameters_have_no_state, Fixture) {
  w.freeze();
  const AdamOptimizer adam(parameters, {});
  BOOST_REQUIRE(adam.state().size() == 2u);
  BOOST_TEST(adam.state()[0].name == "b.m");
  BOOST_TEST(adam.state()[1].name == "b.v");
  b.freeze();
  BOOST_CHECK_THROW(AdamOptimizer(parameters, {}), Error);
}

BOOST_FIXTURE_TEST_CASE(frozen_rows_keep_every_bit_and_do_not_count_in_the_norm, Fixture) {
  const Parameter c = parameters.add("c", {6, 3}, normal(1), true);
  c.learn_only({{1, 2}, {4, 1}});
  BOOST_TEST(c.learning() == 9);
  const std::vector<double> before = c.value().to_doubles();
  for (const OptimizerOptions& options :
       {OptimizerOptions(AdamOptions{.decay = 0.5}), OptimizerOptions(SgdOptions{.decay = 0.5})}) {
    const auto optimizer = make_optimizer(parameters, options);
    for (int step = 1; step <= 3; ++step) {
      send(c, std::vector<double>(18, 2.0));
      BOOST_TEST(take(*optimizer, 0.1, step) == 6.0, close);  // norm of nine gradients of 2.0 each
    }
    for (const auto& [name, tensor] : optimizer->state()) {
      if (name.starts_with("c.")) BOOST_TEST(tensor.shape() == Shape({3, 3}));
    }
  }
  const std::vector<double> after = c.value().to_doubles();
  for (std::size_t i = 0; i < 18; ++i) {
    const bool learns = i / 3 == 1 || i / 3 == 2 || i / 3 == 4;
    BOOST_TEST((after[i] != before[i]) == learns, i);
  }
  using Some = std::vector<Rows>;
  for (const Some& wrong :
       {Some{}, Some{{0, 0}}, Some{{5, 2}}, Some{{-1, 1}},
        Some{{1, std::numeric_limits<std::int64_t>::max()}}, Some{{2, 2}, {3, 1}}}) {
    BOOST_CHECK_THROW(c.learn_only(wrong), Error);
  }
}

BOOST_FIXTURE_TEST_CASE(trained_rows_are_updated_like_a_separate_parameter, Fixture) {
  const Parameter c = parameters.add("c", {3, 2}, constant(1), true);
  const AdamOptions options{.decay = 0.25, .clip = 1.5};
  w.freeze();
  b.freeze();
  c.learn_only({{1, 2}});
  AdamOptimizer some(parameters, options);
  for (int step = 1; step <= 4; ++step) {
    send(c, {9, 9, 1, -2, 3, 0.5});
    take(some, 0.1, step);
  }
  c.freeze();
  w.freeze(false);
  AdamOptimizer whole(parameters, options);
  for (int step = 1; step <= 4; ++step) {
    send(w, {1, -2, 3, 0.5});
    take(whole, 0.1, step);
  }
  const auto rows = c.value().to_doubles();
  BOOST_TEST((std::vector<double>(rows.begin() + 2, rows.end()) == w.value().to_doubles()));
}

BOOST_FIXTURE_TEST_CASE(momentum_continues_after_the_gradient_becomes_zero, Fixture) {
  SgdOptimizer sgd(parameters, {.momentum = 0.5, .decay = 0.25});
  send(w, {2, 0, 0, 0});
  send(b, {4, 0});
  take(sgd, 0.1, 1);  // in the first step, the velocity is gradient + decay * weight
  BOOST_TEST(w.value().to_doubles()[0] == 1 - 0.1 * 2.25, close);
  BOOST_TEST(b.value().to_doubles()[0] == 1 - 0.1 * 4, close);  // biases do not decay
  send(w, {0, 0, 0, 0});
  send(b, {0, 0});
  take(sgd, 0.1, 2);
  BOOST_TEST(b.value().to_doubles()[0] == 0.6 - 0.1 * 2, close);
  BOOST_TEST(w.value().to_doubles()[0] == 0.775 - 0.1 * (0.5 * 2.25 + 0.25 * 0.775), close);
  BOOST_REQUIRE(sgd.state().size() == 2u);
  BOOST_TEST(sgd.state()[0].name == "w.velocity");
}

BOOST_FIXTURE_TEST_CASE(parameter_groups_have_their_own_rate_and_decay, Fixture) {
  const Parameter c = parameters.add("c", {1, 1}, constant(1), true);
  const ParameterGroup slow{.parameters = {w, b}, .rate = 0.1, .decay = 0};
  for (const OptimizerOptions& options :
       {OptimizerOptions(AdamOptions{.beta1 = 0, .beta2 = 0, .epsilon = 0, .decay = 0.5}),
        OptimizerOptions(SgdOptions{.momentum = 0, .decay = 0.5})}) {
    for (const Parameter& p : parameters.all()) {
      (*backend)(Fill{.value = 1, .y = p.value()});
    }
    const auto optimizer = make_optimizer(parameters, options, std::array{slow});
    send(w, {1, 1, 1, 1});
    send(b, {1, 1});
    send(c, {1});
    // The gradient norm covers the parameters of all groups.
    BOOST_TEST(take(*optimizer, 0.1, 1) == std::sqrt(7.0), close);
    BOOST_TEST(w.value().to_doubles()[0] == 1 - 0.01, close);
    BOOST_TEST(b.value().to_doubles()[0] == 1 - 0.01, close);
    BOOST_TEST(c.value().item() == 1 - 0.1 * 0.5 - 0.1, close);
  }
}

BOOST_FIXTURE_TEST_CASE(a_frozen_group_does_not_change, Fixture) {
  const ParameterGroup frozen{.parameters = {w}, .frozen = true};
  SgdOptimizer sgd(parameters, {.decay = 0.5}, std::array{frozen});
  BOOST_TEST(w.frozen());
  BOOST_TEST(!w.var().wants_grad());
  send(b, {1, 1});
  take(sgd, 0.1, 1);
  BOOST_TEST(w.value().to_doubles() == std::vector<double>(4, 1.0));
  BOOST_TEST(b.value().to_doubles()[0] == 0.9, close);
}

BOOST_FIXTURE_TEST_CASE(invalid_parameter_groups_are_refused, Fixture) {
  Parameters others(*backend, {DType::f64}, 1);
  const Parameter other = others.add("w", {2, 2}, constant(1), true);
  const auto refused = [&](std::vector<ParameterGroup> groups, const std::string& words) {
    BOOST_TEST(contains(refusal([&] { AdamOptimizer(parameters, {}, groups); }), words));
  };
  refused({{.parameters = {w}}, {.parameters = {b, w}}},
          "w: expected the parameter in at most one group");
  refused({{.parameters = {other}}}, "expected only parameters of the model in a group, got w");
  refused({{.parameters = {}}}, "got an empty one");
  refused({{.parameters = {w}, .rate = -1}},
          "a group's rate: expected a number of at least 0, got -1");
}

BOOST_AUTO_TEST_CASE(bf16_moments_are_f32_moments_rounded_at_each_step) {
  const auto cpu = make_cpu_backend({.threads = 2});
  Rng rng(4, Purpose::test);
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{130, 77}}) {
    const auto size = static_cast<std::size_t>(shape.size());
    std::vector<double> gradient(size);
    for (double& g : gradient) g = 0.1 * rng.normal();
    // `moments` has both moments in f32, then both in bf16. `values` has the weights that result
    // from f32 moments, then from bf16 moments.
    std::vector<std::vector<double>> moments, values;
    for (const bool short_moments : {false, true}) {
      Parameters parameters(*cpu, {}, 1);
      const Parameter w = parameters.add("w", shape, constant(1), true);
      AdamOptimizer adam(parameters, {.beta2 = 0.9, .decay = 0.1, .short_moments = short_moments});
      for (std::int64_t step = 1; step <= 3; ++step) {
        w.var().sink().add(Tensor::from(*cpu, shape, DType::f32, gradient));
        adam.prepare(0.01, step);
        adam.step(Tensor::from(*cpu, {1}, DType::f32, std::vector<double>{1}));
      }
      for (const auto& state : adam.state()) {
        BOOST_TEST((state.tensor.dtype() == (short_moments ? DType::bf16 : DType::f32)));
        moments.push_back(state.tensor.to_doubles());
      }
      values.push_back(w.value().to_doubles());
    }
    for (std::size_t k = 0; k < 2; ++k) {
      const std::vector<double>&exact = moments[k], &rounded = moments[2 + k];
      for (std::size_t i = 0; i < size; ++i) {
        // Each of three steps rounds a moment to bf16, with a relative error of at most 2^-8. These
        // errors are rarely all large and of the same sign, so the bound is half of their maximum
        // sum. The factor is 3.01 instead of 3 because numbers are also rounded to f32.
        BOOST_TEST(std::abs(rounded[i] - exact[i]) <= 3.01 * 0x1p-9 * std::abs(exact[i]));
      }
      BOOST_TEST((size == 1 || rounded != exact));
    }
    for (std::size_t i = 0; i < size; ++i) {
      BOOST_TEST(values[1][i] == values[0][i], boost::test_tools::tolerance(1e-3));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_bf16_second_moment_decays_without_gradients) {
  const auto cpu = make_cpu_backend();
  Parameters parameters(*cpu, {}, 1);
  const Parameter w = parameters.add("w", {2}, constant(1), true);
  AdamOptimizer adam(parameters, {.beta2 = 0.99, .short_moments = true});
  for (std::int64_t step = 1; step <= 300; ++step) {
    const double gradient = step == 1 ? 1 : 0;
    w.var().sink().add(Tensor::from(*cpu, {2}, DType::f32, std::vector<double>(2, gradient)));
    adam.prepare(0, step);
    adam.step(Tensor::from(*cpu, {1}, DType::f32, std::vector<double>{1}));
  }
  const double left = 0.01 * std::pow(0.99, 299);
  for (const double v : adam.state()[1].tensor.to_doubles()) {
    BOOST_TEST(v > 0.3 * left);
    BOOST_TEST(v < 3 * left);
  }
}

namespace {

/// An optimizer that replaces each weight w by w - rate (factor * gradient + decay * w). Its state
/// is the number of steps.
class Plain final : public Optimizer {
 public:
  Plain(const Parameters& parameters, Groups groups, Communicator* ranks)
      : Optimizer(parameters, {.decay = 0.5, .clip = 1, .state = {"steps"}}, groups, ranks) {}
  std::string_view kind() const override { return "plain"; }

 private:
  void apply(const Update& update) const override {
    for (std::size_t i = 0; i < update.parameters.size(); ++i) {
      const Var w = update.parameters[i], steps = update.state[0][i];
      const Var g = multiply(update.gradients[i], update.factor);
      const Var decayed = add(g, scale(w, update.decay[i]));
      update.assign(w.value(), subtract(w, multiply(decayed, update.now)));
      update.assign(steps.value(), add(steps, number_like(steps, 1)));
    }
  }
};

/// An optimizer with a bug: it declares that now() returns two numbers, but now() returns only one.
class Two final : public Optimizer {
 public:
  Two(const Parameters& parameters, Groups groups, Communicator* ranks)
      : Optimizer(parameters, {.numbers = 2}, groups, ranks) {}
  std::string_view kind() const override { return "two"; }

 private:
  void apply(const Update&) const override {}
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(an_optimizer_of_the_users_own_is_made_and_executed, Fixture) {
  const OptimizerOptions options = [](const Parameters& of, auto groups, Communicator* ranks) {
    return std::make_unique<Plain>(of, groups, ranks);
  };
  const ParameterGroup slow{.parameters = {b}, .rate = 0.5};
  const auto optimizer = make_optimizer(parameters, options, std::array{slow});
  BOOST_TEST(optimizer->kind() == "plain");
  send(w, {3, 0, 0, 0});
  send(b, {0, 4});
  BOOST_TEST(take(*optimizer, 0.1, 1) == 5.0, close);
  BOOST_TEST(w.value().to_doubles()[0] == 1 - 0.1 * (3.0 / 5 + 0.5), close);
  BOOST_TEST(w.value().to_doubles()[3] == 1 - 0.1 * 0.5, close);
  BOOST_TEST(b.value().to_doubles()[1] == 1 - 0.05 * 4.0 / 5, close);
  BOOST_REQUIRE(optimizer->state().size() == 2u);
  BOOST_TEST(optimizer->state()[0].name == "w.steps");
  // A step with a NaN in the gradients changes neither the parameters nor the optimizer's state.
  const std::vector<double> before = w.value().to_doubles();
  send(w, {std::numeric_limits<double>::quiet_NaN(), 0, 0, 0});
  send(b, {0, 4});
  take(*optimizer, 0.1, 2);
  BOOST_TEST(w.value().to_doubles() == before);
  BOOST_TEST(optimizer->state()[0].tensor.to_doubles() == std::vector<double>(4, 1.0));
  Two two(parameters, {}, nullptr);
  expect_refusal([&] { two.prepare(0.1, 1); },
                 "optimizer two: now(): expected 2 numbers, as declared by the optimizer, got 1");
  expect_refusal([&] { make_optimizer(parameters, OptimizerMaker()); },
                 "expected a function that returns an optimizer, got no function");
}

BOOST_AUTO_TEST_SUITE_END()
