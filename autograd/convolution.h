#pragma once

#include "autograd/heads.h"

/// Differentiable operation of core/contract/convolution.h.
namespace longhand {

struct ConvolutionOptions {
  /// Rows before each sequence, and rows for the tokens after it; both may be the same tensor. They
  /// are not differentiated, so no input may require a gradient if one of them is given.
  Tensor before = {}, after = {};
  /// Nothing else reads these columns of x, so their gradient is assigned.
  bool alone = false;
};

/// Returns [tokens, heads * width], x's heads side by side. weight: [taps, heads * width]
Var short_convolution(const HeadVars& x, const Segments& segments, const Var& weight,
                      const ConvolutionOptions& options = {});

}  // namespace longhand
