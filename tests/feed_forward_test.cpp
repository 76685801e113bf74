#include "autograd/feed_forward.h"

#include <set>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "core/contract/matmul.h"
#include "tests/composed_twin.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(feed_forward_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(the_fused_feed_forward_has_the_gradients_of_separate_operations) {
  check_composed("feed_forward", [](const catalog::Call& c) -> std::vector<catalog::Output> {
    return {{"y", feed_forward_composed(c.in("x"), {.up = c.in("up"),
                                                    .up_bias = c.maybe("up_bias"),
                                                    .down = c.in("down"),
                                                    .down_bias = c.maybe("down_bias"),
                                                    .f = c.activation("f"),
                                                    .residual = c.maybe("residual")})}};
  });
}

BOOST_AUTO_TEST_CASE(only_required_gradients_are_computed) {
  const auto reference = make_reference_backend();
  const auto ones = [&](const Shape& shape, bool wants_grad) {
    return Var(Tensor::from(*reference, shape, DType::f64,
                            std::vector<double>(static_cast<std::size_t>(shape.size()), 0.5)),
               wants_grad);
  };
  const Var x = ones({2, 3}, false), residual = ones({2, 4}, true);
  const FeedForwardOptions frozen{
      .up = ones({5, 3}, false), .down = ones({4, 5}, false), .residual = residual};
  Tape tape;
  const Var y = recorded(tape, [&] { return feed_forward(x, frozen); });
  int products = 0;
  reference->observer = [&](std::string_view name) { products += name == Matmul::name; };
  const Tensor dy = ones({2, 4}, false).value();
  tape.backward(y, dy);
  reference->observer = nullptr;
  BOOST_TEST(products == 0);
  BOOST_TEST(residual.grad().to_doubles() == dy.to_doubles());
}

BOOST_AUTO_TEST_SUITE_END()
