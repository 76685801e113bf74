#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/convolution.h.
namespace longhand {

struct ConvolutionOptions {
  /// `before` contains the rows of x that precede each sequence. `after` receives the last rows of
  /// each sequence, for use as `before` in the next call. `before` and `after` may be the same
  /// tensor. They have no gradient: if one of them is given, no input may require a gradient.
  Tensor before = {}, after = {};
  /// True if no other operation uses the columns of x that this operation reads. The gradient of
  /// these columns is then assigned instead of added.
  bool sole_reader = false;
};

/// A weighted sum of the last `taps` tokens, separately for each column. Returns
/// [tokens, heads * width], with the heads of x side by side. weight is [taps, heads * width].
Var short_convolution(const HeadVars& x, const Segments& segments, const Var& weight,
                      const ConvolutionOptions& options = {});

}  // namespace longhand
