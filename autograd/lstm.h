#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/lstm.h.
namespace longhand {

struct LstmOptions {
  /// The state before these tokens, and the tensor that receives the state after them. Both may be
  /// the same tensor. They are not differentiated: if one of them is given, no input may require a
  /// gradient.
  Tensor before = {}, after = {};
  /// True if no other operation reads the columns of x in which these heads are stored. The
  /// gradient of x is then assigned instead of added.
  bool alone = false;
};

/// Returns y, [tokens, heads * n]. The heads of x have 4 n columns. u is [heads * 4 n, n].
Var lstm(const HeadVars& x, const Segments& segments, const Var& u,
         const LstmOptions& options = {});

/// The same result, composed of products and elementwise operations, token by token.
Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u);

}  // namespace longhand
