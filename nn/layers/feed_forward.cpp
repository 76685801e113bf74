#include "nn/layers/feed_forward.h"

#include "autograd/elementwise.h"
#include "autograd/feed_forward.h"

namespace longhand::nn {

FeedForward::FeedForward(const Scope& scope, const FeedForwardShape& shape, Initial first,
                         Initial last)
    : up(scope / "up", shape.width, shape.inner, shape.bias, first),
      down(scope / "down", shape.inner, shape.width, shape.bias, last),
      f(shape.f) {}

Var FeedForward::operator()(const Var& x, const Var& residual) const {
  const bool in_blocks = up.weight.blocks() || down.weight.blocks();
  if (in_blocks || !up.adapters.empty() || !down.adapters.empty()) {
    return down(activate(f, up(x)), {.residual = residual});
  }
  up.weight.require_columns(x, up.weight.shape().columns());
  return feed_forward(x, {.up = up.weight,
                          .up_bias = up.bias,
                          .down = down.weight,
                          .down_bias = down.bias,
                          .f = f,
                          .residual = residual});
}

GatedFeedForward::GatedFeedForward(const Scope& scope, const FeedForwardShape& shape, Initial first,
                                   Initial last)
    : gate_up(scope / "gate_up", shape.width, 2 * shape.inner, shape.bias, first),
      down(scope / "down", shape.inner, shape.width, shape.bias, last),
      f(shape.f) {}

Var GatedFeedForward::operator()(const Var& x, const Var& residual) const {
  return down(gate(f, gate_up(x)), {.residual = residual});
}

}  // namespace longhand::nn
