#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/lstm.h.
namespace longhand {

struct LstmOptions {
  /// The state before these tokens, and the tensor that receives the state after them; both may be
  /// the same tensor. They are not differentiated: if one of them is given, no input may require a
  /// gradient.
  Tensor before = {}, after = {};
  /// True if no other operation uses these columns of x, so that their gradient can be assigned
  /// instead of added.
  bool alone = false;
};

/// Returns [tokens, heads * n]. x has heads of 4 n columns; u is [heads * 4 n, n].
Var lstm(const HeadVars& x, const Segments& segments, const Var& u,
         const LstmOptions& options = {});

/// The same result, composed of products and elementwise operations, token by token.
Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u);

}  // namespace longhand
