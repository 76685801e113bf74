#pragma once

#include "autograd/variable.h"
#include "core/formulas.h"

namespace longhand {

struct FeedForwardOptions {
  Var up, up_bias = {};      // shapes [hidden, in] and [hidden]
  Var down, down_bias = {};  // shapes [out, hidden] and [out]
  Activation f = Activation::gelu;
  Var residual = {};
};

/// f(x up^T + up_bias) down^T + down_bias + residual, recorded as one operation. In the backward
/// pass, the derivative of f is fused into the product with `down`.
Var feed_forward(const Var& x, const FeedForwardOptions& options);
/// Computes the same result as feed_forward() by two matmul() calls.
Var feed_forward_composed(const Var& x, const FeedForwardOptions& options);

}  // namespace longhand
