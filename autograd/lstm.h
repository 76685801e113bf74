#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/lstm.h.
namespace longhand {

struct LstmOptions {
  /// `before` contains the recurrent state before the first token, and `after` receives the state
  /// after the last token. They may be the same tensor. They are not differentiated: if `before` or
  /// `after` is given, no input may require a gradient.
  Tensor before = {}, after = {};
  /// True if lstm() is the only operation that reads the columns of x in which its heads are
  /// stored. The gradient of these columns is then assigned instead of added.
  bool sole_reader = false;
};

/// Returns y, [tokens, heads * n], where n is the number of hidden units of a head. Each head of x
/// has 4 n columns, and u is [heads * 4 n, n].
Var lstm(const HeadVars& x, const Segments& segments, const Var& u,
         const LstmOptions& options = {});

/// The same result as lstm(), composed of products and elementwise operations, token by token.
Var composed_lstm(const HeadVars& x, const Segments& segments, const Var& u);

}  // namespace longhand
