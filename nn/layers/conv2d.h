#pragma once

#include <optional>

#include "autograd/patches.h"
#include "core/formulas.h"
#include "nn/module.h"

namespace longhand::nn {

/// A convolution of images: y = f(weight p + bias) for each patch p of x, a square of pixels
/// (autograd/patches.h). f is an optional activation. x is [images, height, width, in], and y is
/// [images, rows, columns, out].
class Conv2d {
 public:
  Conv2d() = default;
  /// Initial weights are normally distributed with standard deviation 1/sqrt(size * size * in),
  /// where patches have size x size pixels.
  Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, PatchOptions patch);

  Var operator()(const Var& x, std::optional<Activation> f = {}) const;

  Parameter weight, bias;  // weight [out, size * size * in], bias [out]
  PatchOptions patch;
};

}  // namespace longhand::nn
