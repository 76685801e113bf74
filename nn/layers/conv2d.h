#pragma once

#include <optional>

#include "autograd/patches.h"
#include "core/formulas.h"
#include "nn/module.h"

namespace longhand::nn {

/// A convolution of images: y = f(W p + b) for each patch p of x (autograd/patches.h). x is
/// [images, height, width, in], y is [images, rows, columns, out].
class Conv2d {
 public:
  Conv2d() = default;
  /// Initial weights are normal with standard deviation 1/sqrt(number of inputs of an output).
  Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, PatchOptions patch);

  Var operator()(const Var& x, std::optional<Activation> f = {}) const;

  Parameter weight, bias;  // [out, size * size * in], [out]
  PatchOptions patch;
};

}  // namespace longhand::nn
