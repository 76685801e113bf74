#pragma once

#include "autograd/heads.h"

/// Differentiable form of core/contract/lstm.h.
namespace longhand {

struct LstmOptions {
  /// What was kept of earlier tokens, and where it goes on: one tensor may be both. They are not
  /// differentiated: with one of them no input may want a gradient.
  Tensor before = {}, after = {};
  /// Nothing else reads these columns of x: their gradient is assigned.
  bool alone = false;
};

/// x: heads of 4 n columns; u [heads * 4 n, n]. [tokens, heads * n]
Var lstm(const HeadVars& x, const Segments& segments, const Var& u,
         const LstmOptions& options = {});

/// The same put together from products and elementwise operations, token by token.
Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u);

}  // namespace longhand
