#pragma once

#include "autograd/variable.h"

namespace longhand {

struct FeedForwardOptions {
  Var up, up_bias = {};      // [hidden, in], [hidden]
  Var down, down_bias = {};  // [out, hidden], [out]
  Activation f = Activation::gelu;
  Var residual = {};
};

/// f(x up^T + up_bias) down^T + down_bias + residual, as one record. The derivative of f is fused
/// into the product with `down` in backward.
Var feed_forward(const Var& x, const FeedForwardOptions& options);
/// The same, composed of two matmuls.
Var feed_forward_composed(const Var& x, const FeedForwardOptions& options);

}  // namespace longhand
