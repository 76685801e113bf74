#pragma once

#include "autograd/heads.h"

/// Differentiable form of core/contract/convolution.h.
namespace longhand {

struct ConvolutionOptions {
  /// What came before each sequence, and what the tokens after it need: one tensor may be both.
  /// They are not differentiated: with one of them no input may want a gradient.
  Tensor before = {}, after = {};
  /// Nothing else reads these columns of x: their gradient is assigned.
  bool alone = false;
};

/// [tokens, heads * width] of x's heads side by side. weight: [taps, heads * width]
Var short_convolution(const HeadVars& x, const Segments& segments, const Var& weight,
                      const ConvolutionOptions& options = {});

}  // namespace longhand
