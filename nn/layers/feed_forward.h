#pragma once

#include "core/formulas.h"
#include "nn/layers/linear.h"
#include "nn/options.h"

namespace longhand::nn {

/// Widths and activation of a block's feed forward.
struct FeedForwardShape {
  std::int64_t width = 0, inner = 0;
  Activation f = Activation::gelu;
  bool bias = true;
};

/// y = down(f(up(x))) + residual, where f is the activation. `up` and `down` are linear layers.
class FeedForward {
 public:
  FeedForward() = default;
  FeedForward(const Scope& scope, const FeedForwardShape& shape, Initial up, Initial down);

  Var operator()(const Var& x, const Var& residual) const;

  Linear up, down;
  Activation f = Activation::gelu;
};

/// y = down(f(gate(x)) * up(x)) + residual, where f is the activation and the product is
/// elementwise. The linear layer `gate_up` computes gate(x) in the first half of its columns and
/// up(x) in the second half.
class GatedFeedForward {
 public:
  GatedFeedForward() = default;
  GatedFeedForward(const Scope& scope, const FeedForwardShape& shape, Initial up, Initial down);

  Var operator()(const Var& x, const Var& residual) const;

  Linear gate_up, down;
  Activation f = Activation::silu;
};

}  // namespace longhand::nn
