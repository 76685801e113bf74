#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/convolution.h.
namespace longhand {

struct ConvolutionOptions {
  /// The rows before each sequence, and the tensor that receives the last rows for the next call.
  /// Both may be the same tensor. They are not differentiated: if one of them is given, no input
  /// may require a gradient.
  Tensor before = {}, after = {};
  /// True if no other operation uses the columns of x that this operation reads. Their gradient is
  /// then assigned instead of added.
  bool alone = false;
};

/// Returns [tokens, heads * width], with the heads of x side by side. weight is
/// [taps, heads * width].
Var short_convolution(const HeadVars& x, const Segments& segments, const Var& weight,
                      const ConvolutionOptions& options = {});

}  // namespace longhand
