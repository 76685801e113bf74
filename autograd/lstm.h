#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/lstm.h.
namespace longhand {

struct LstmOptions {
  /// The state before these tokens, and where the state after them is stored; both may be the same
  /// tensor. They are not differentiated, so no input may require a gradient if one of them is
  /// given.
  Tensor before = {}, after = {};
  /// Nothing else reads these columns of x, so their gradient is assigned.
  bool alone = false;
};

/// Returns [tokens, heads * n]. x: heads of 4 n columns; u: [heads * 4 n, n].
Var lstm(const HeadVars& x, const Segments& segments, const Var& u,
         const LstmOptions& options = {});

/// The same, composed of products and elementwise operations, token by token.
Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u);

}  // namespace longhand
