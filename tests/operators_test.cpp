#include "longhand.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

#include "autograd/rearrange.h"
#include "autograd/reduce.h"
#include "core/error.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(operators_test)

using namespace longhand;

// Compares the operators of Var and operations such as split and permute with numbers computed by
// hand.

namespace {

using Doubles = std::vector<double>;

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Var leaf(const Shape& shape, const Doubles& values) const {
    return Var(Tensor::from(*backend, shape, DType::f64, values), true);
  }
  static Doubles grad(const Var& x) { return x.grad().to_doubles(); }
  static Doubles values(const Var& x) { return x.value().to_doubles(); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(formulas_can_be_written_with_operators, Fixture) {
  const Var x = leaf({2, 2}, {1, 2, 4, 8}), w = leaf({2, 2}, {1, 0, 1, 1}), b = leaf({2}, {10, 20});
  Tape tape;
  {
    const Recording recording(tape);
    const Var y = -(x % w) * 2.0 + b / 10.0 - 1.0 / x + (3.0 - x);
    BOOST_TEST(values(y) == Doubles({-6 + 1 - 1 + 2, -4 + 2 - 0.5 + 1, -24 + 1 - 0.25 - 1,
                                     -16 + 2 - 0.125 - 5}));
    tape.backward(sum(y));
  }
  // x % w is the matrix product. The gradient of x_ij is -2 (w_j0 + w_j1) + 1 / x_ij^2 - 1.
  BOOST_TEST(grad(x) == Doubles({-2 + 1 - 1, -4 + 0.25 - 1, -2 + 0.0625 - 1, -4 + 0.015625 - 1}));
  BOOST_TEST(grad(b) == Doubles({0.2, 0.2}));
}

BOOST_FIXTURE_TEST_CASE(the_gradient_of_a_broadcast_operand_is_summed, Fixture) {
  const Var x = leaf({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Var middle = leaf({3, 1}, {1, 10, 100}), ends = leaf({2, 1, 2}, {1, 2, 3, 4});
  backpropagate([&] { return sum(x * middle + x * ends); });
  BOOST_TEST(grad(middle) == Doubles({1 + 2 + 7 + 8, 3 + 4 + 9 + 10, 5 + 6 + 11 + 12}));
  BOOST_TEST(grad(ends) == Doubles({1 + 3 + 5, 2 + 4 + 6, 7 + 9 + 11, 8 + 10 + 12}));
  BOOST_TEST(grad(x) == Doubles({2, 3, 11, 12, 101, 102, 4, 5, 13, 14, 103, 104}));
}

BOOST_FIXTURE_TEST_CASE(the_first_of_equal_maxima_gets_the_gradient, Fixture) {
  const Var a = leaf({3}, {1, 5, 2}), b = leaf({3}, {1, 4, 3}),
            x = leaf({2, 3}, {4, 4, 1, 0, 2, 2});
  Tape tape;
  {
    const Recording recording(tape);
    tape.backward({sum(maximum(a, b)), sum(minimum(a, b)), sum(max(x, -1)), sum(max(x, 0))});
  }
  // In entry 0, a equals b, and both maximum() and minimum() pass their gradients to a.
  BOOST_TEST(grad(a) == Doubles({2, 1, 1}));
  BOOST_TEST(grad(b) == Doubles({0, 1, 1}));
  BOOST_TEST(grad(x) == Doubles({2, 1, 0, 0, 1, 1}));
}

BOOST_FIXTURE_TEST_CASE(where_ignores_nan_in_values_that_it_does_not_select, Fixture) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Var a = leaf({2, 2}, {1, infinity, NAN, 4}), b = leaf({2}, {7, 8});
  const Var mask = Tensor::from(*backend, {2, 2}, DType::f64, Doubles{1, 0, 0, 1});
  Tape tape;
  {
    const Recording recording(tape);
    const Var y = where(mask, a, b);
    BOOST_TEST(values(y) == Doubles({1, 8, 7, 4}));
    tape.backward(y, Tensor::from(*backend, {2, 2}, DType::f64, Doubles{2, 3, 5, 7}));
  }
  BOOST_TEST(grad(a) == Doubles({2, 0, 0, 7}));
  BOOST_TEST(grad(b) == Doubles({5, 3}));
}

BOOST_FIXTURE_TEST_CASE(concatenating_all_parts_restores_the_tensor, Fixture) {
  const Var x = leaf({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  Tape tape;
  {
    const Recording recording(tape);
    const std::vector<Var> parts = split(x, 1, {2, 0, 3});
    BOOST_TEST(values(parts[0]) == Doubles({0, 1, 5, 6}));
    BOOST_TEST(values(parts[2]) == Doubles({2, 3, 4, 7, 8, 9}));
    BOOST_TEST(values(concat(parts, -1)) == values(x));
    tape.backward(sum(concat({parts[2] * 2.0, parts[0]}, 1)));
  }
  BOOST_TEST(grad(x) == Doubles({1, 1, 2, 2, 2, 1, 1, 2, 2, 2}));
  BOOST_CHECK_THROW(split(x, 1, {2, 2}), Error);
  BOOST_CHECK_THROW(narrow(x, 1, 4, 2), Error);
  BOOST_CHECK_THROW(concat({x, leaf({1, 4}, {0, 0, 0, 0})}, 0), Error);
}

BOOST_FIXTURE_TEST_CASE(axes_can_be_permuted, Fixture) {
  const Var x = leaf({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Var y = permute(x, {2, 0, 1});
  BOOST_TEST(y.shape() == Shape({2, 2, 3}));
  BOOST_TEST(values(y) == Doubles({0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
  BOOST_TEST(values(permute(y, {1, 2, 0})) == values(x));
  BOOST_TEST(values(transpose(x)) == Doubles({0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
  BOOST_TEST(values(sum(x, 1)) == Doubles({6, 9, 24, 27}));
  BOOST_TEST(values(mean(x, 0)) == Doubles({3, 4, 5, 6, 7, 8}));
  BOOST_CHECK_THROW(permute(x, {0, 0, 1}), Error);
  BOOST_CHECK_THROW(permute(x, {0, 1}), Error);
  BOOST_CHECK_THROW(max(x, 3), Error);
}

BOOST_AUTO_TEST_SUITE_END()
