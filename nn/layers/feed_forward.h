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

/// y = f(x U^T + a) D^T + b + residual
class FeedForward {
 public:
  FeedForward() = default;
  FeedForward(const Scope& scope, const FeedForwardShape& shape, Initial up, Initial down);

  Var operator()(const Var& x, const Var& residual) const;

  Linear up, down;
  Activation f = Activation::gelu;
};

/// y = (f(x G^T + a) * (x U^T + c)) D^T + b + residual. The first half of the rows of `gate_up` is
/// G, the second half U.
class GatedFeedForward {
 public:
  GatedFeedForward() = default;
  GatedFeedForward(const Scope& scope, const FeedForwardShape& shape, Initial up, Initial down);

  Var operator()(const Var& x, const Var& residual) const;

  Linear gate_up, down;
  Activation f = Activation::silu;
};

}  // namespace longhand::nn
