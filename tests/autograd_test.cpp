#include "tests/check.h"

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/loss.h"
#include "autograd/matmul.h"
#include "autograd/recompute.h"
#include "autograd/reduce.h"
#include "core/error.h"
#include "core/formulas.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(autograd_test)

using namespace longhand;

namespace {

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Var leaf(std::vector<double> values, bool wants_grad = true) const {
    const auto n = static_cast<std::int64_t>(values.size());
    return Var(Tensor::from(*backend, {n}, DType::f64, values), wants_grad);
  }
  static std::vector<double> grad(const Var& x) { return x.grad().to_doubles(); }
};
using Doubles = std::vector<double>;

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_gradient_of_a_value_used_twice_is_the_sum_of_both, Fixture) {
  const Var x = leaf({2, 3});
  backpropagate([&] { return sum(add(multiply(x, x), x)); });
  BOOST_TEST(grad(x) == Doubles({5, 7}));
}

BOOST_FIXTURE_TEST_CASE(a_gradient_that_two_values_share_is_copied_before_adding, Fixture) {
  // Both inputs of an addition receive the same tensor dy. x then receives a second contribution,
  // which must not change the gradient of y.
  const Var x = leaf({1}), y = leaf({1});
  Tape tape;
  {
    const Recording recording(tape);
    const Var late = scale(x, 10);  // recorded first, so backward processes it last
    tape.backward(sum(add(late, add(x, y))));
  }
  BOOST_TEST(grad(x) == Doubles({11}));
  BOOST_TEST(grad(y) == Doubles({1}));
}

BOOST_FIXTURE_TEST_CASE(frozen_values_get_no_gradient_and_are_not_recorded, Fixture) {
  const Var x = leaf({1, 2}), frozen = leaf({3, 4}, false);
  Tape tape;
  {
    const Recording recording(tape);
    const Var constant = multiply(frozen, frozen);
    BOOST_TEST(tape.size() == 0u);
    tape.backward(sum(multiply(x, constant)));
  }
  BOOST_TEST(grad(x) == Doubles({9, 16}));
  BOOST_TEST(!frozen.grad());
}

BOOST_FIXTURE_TEST_CASE(several_losses_add_up_in_one_backward, Fixture) {
  const Var x = leaf({1, 2});
  Tape tape;
  {
    const Recording recording(tape);
    tape.backward({sum(x), sum(scale(x, 3))});
  }
  BOOST_TEST(grad(x) == Doubles({4, 4}));
}

BOOST_FIXTURE_TEST_CASE(gradients_accumulate_over_backwards_until_cleared, Fixture) {
  const Var x = leaf({1, 2});
  Tape tape;
  for (int i = 0; i < 2; ++i) {
    const Recording recording(tape);
    tape.backward(sum(scale(x, 2)));
  }
  BOOST_TEST(grad(x) == Doubles({4, 4}));
  x.clear_grad();
  BOOST_TEST(!x.grad());
}

BOOST_FIXTURE_TEST_CASE(an_output_that_no_loss_depends_on_is_skipped, Fixture) {
  const Var x = leaf({1, 2});
  Tape tape;
  {
    const Recording recording(tape);
    scale(x, 100);
    tape.backward(sum(x));
  }
  BOOST_TEST(grad(x) == Doubles({1, 1}));
  BOOST_TEST(tape.size() == 0u);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_recorded_without_a_recording, Fixture) {
  const Var x = leaf({1, 2});
  BOOST_TEST(!sum(x).wants_grad());
}

BOOST_FIXTURE_TEST_CASE(the_gradient_of_a_slice_is_added_to_its_rows, Fixture) {
  const Var x = leaf({1, 2, 3, 4});
  Tape tape;
  {
    const Recording recording(tape);
    tape.backward({sum(slice(x, 1, 2)), sum(scale(slice(x, 2, 2), 5))});
  }
  BOOST_TEST(grad(x) == Doubles({0, 1, 6, 5}));
}

BOOST_FIXTURE_TEST_CASE(a_loss_of_more_than_one_element_is_refused, Fixture) {
  const Var x = leaf({1, 2});
  Tape tape;
  const Recording recording(tape);
  BOOST_CHECK_THROW(tape.backward(scale(x, 2)), Error);
}

BOOST_FIXTURE_TEST_CASE(backward_frees_each_record_after_its_use, Fixture) {
  // Forward stores one tensor for each of `depth` activations. Backward frees each tensor after its
  // use, so the peak memory of backward is that of forward plus a few gradients, not twice as much.
  constexpr std::int64_t n = 1 << 16;
  constexpr int depth = 32;
  const Var x(Tensor::zeros(*backend, {n}, DType::f64), true);
  const std::size_t one = n * sizeof(double);
  Tape tape;
  {
    const Recording recording(tape);
    const std::size_t before = backend->memory().use().live;
    Var y = x;
    for (int i = 0; i < depth; ++i) y = activate(Activation::tanh, y);
    const Var loss = sum(y);
    y = {};
    const std::size_t forward = backend->memory().use().live - before;
    BOOST_TEST(forward >= (depth - 1) * one);
    backend->memory().reset_peak();
    tape.backward(loss);
    const std::size_t peak = backend->memory().use().peak - before;
    BOOST_TEST(peak <= forward + 4 * one);
    BOOST_TEST(backend->memory().use().live - before <= 2 * one);  // only dx and the loss remain
  }
}

BOOST_FIXTURE_TEST_CASE(consuming_the_logits_does_not_change_the_gradient, Fixture) {
  const Var w(Tensor::from(*backend, {2, 3}, DType::f64, Doubles{1, 2, 3, 4, 5, 6}), true);
  const Tensor targets = Tensor::from(*backend, {2, 1}, std::vector<std::int32_t>{0, 2});
  const auto gradient = [&](bool consume) {
    w.clear_grad();
    Tape tape;
    const Recording recording(tape);
    tape.backward(cross_entropy(scale(w, 2), targets, {.consume_logits = consume}));
    return grad(w);
  };
  BOOST_TEST(gradient(true) == gradient(false));
}

BOOST_FIXTURE_TEST_CASE(a_watched_leaf_is_reported_only_when_its_gradient_is_complete, Fixture) {
  // The forward pass uses x first and last, y in between, z in a recomputed part, and `idle`
  // nowhere. Backward must complete the gradient of z, then of y, then of x.
  const Var x = leaf({2}), y = leaf({3}), z = leaf({5}), idle = leaf({7});
  std::vector<std::size_t> order;
  std::vector<double> gradients;
  const std::vector<Var> leaves{x, y, z, idle};
  Tape tape;
  tape.watch(std::vector<Sink>{x.sink(), y.sink(), z.sink(), idle.sink()}, [&](std::size_t leaf) {
    order.push_back(leaf);
    gradients.push_back(grad(leaves[leaf])[0]);
  });
  {
    const Recording recording(tape);
    const Var first = multiply(x, x);       // `first` has the value 4
    const Var second = multiply(first, y);  // `second` has the value 12
    // `third` has the value 60.
    const Var third = recomputed(second, z, [&](const Var& in) { return multiply(in, z); });
    tape.backward(sum(multiply(third, x)));  // x^3 y z has value 120
  }
  BOOST_TEST(order == std::vector<std::size_t>({2, 1, 0}));
  BOOST_TEST(gradients == Doubles({24, 40, 180}));
}

BOOST_AUTO_TEST_SUITE_END()
