#include "nn/optimizer.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

#include "core/error.h"

using namespace longhand;
using namespace longhand::nn;

BOOST_AUTO_TEST_SUITE(optimizer_test)

namespace {

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Parameters parameters{*backend, DType::f64, 1};
  Parameter w = parameters.add("w", {2, 2}, constant(1), true);
  Parameter b = parameters.add("b", {2}, constant(1), false);
  void send(const Parameter& parameter, std::vector<double> gradient) const {
    parameter.var().sink().add(
        Tensor::from(*backend, parameter.value().shape(), DType::f64, gradient));
  }
  /// A step whose loss is sound unless told otherwise; the norm of the gradients.
  double take(AdamOptimizer& adam, double rate, std::int64_t step, double loss = 1) const {
    adam.prepare(rate, step);
    adam.step(Tensor::from(*backend, {1}, DType::f64, std::vector<double>{loss}));
    return adam.norm().item();
  }
};
const auto close = boost::test_tools::tolerance(1e-12);

}  // namespace

BOOST_FIXTURE_TEST_CASE(decay_moves_matrices_and_leaves_biases, Fixture) {
  AdamOptimizer adam(parameters, {.epsilon = 0, .decay = 0.5});
  send(w, {2, 2, 2, 2});
  send(b, {2, 2});
  BOOST_TEST(take(adam, 0.1, 1) == std::sqrt(24.0), close);
  // The first step is rate * sign(g); AdamW shrinks first.
  BOOST_TEST(w.value().to_doubles()[3] == 1 * (1 - 0.1 * 0.5) - 0.1, close);
  BOOST_TEST(b.value().to_doubles()[1] == 1 - 0.1, close);
  BOOST_TEST(!w.var().grad());
}

BOOST_FIXTURE_TEST_CASE(clipping_scales_all_gradients_by_one_factor, Fixture) {
  AdamOptimizer adam(parameters, {.beta1 = 0, .beta2 = 0, .epsilon = 1, .clip = 1});
  send(w, {3, 0, 0, 0});
  send(b, {0, 4});
  BOOST_TEST(take(adam, 1, 1) == 5.0, close);
  // g = 3/5: w - g / (g + 1)
  BOOST_TEST(w.value().to_doubles()[0] == 1 - 0.6 / 1.6, close);
  BOOST_TEST(b.value().to_doubles()[1] == 1 - 0.8 / 1.8, close);
}

BOOST_FIXTURE_TEST_CASE(what_no_loss_reached_stays, Fixture) {
  AdamOptimizer adam(parameters, {.decay = 0.1});
  for (int step = 1; step <= 2; ++step) {
    send(b, {1, 1});
    take(adam, 0.1, step);
  }
  BOOST_TEST(w.value().to_doubles() == std::vector<double>(4, 1.0));
  BOOST_CHECK_THROW(take(adam, 0.1, 3), Error);
}

BOOST_FIXTURE_TEST_CASE(after_a_loss_or_norm_that_is_not_finite_it_stands_still, Fixture) {
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

BOOST_AUTO_TEST_SUITE_END()
