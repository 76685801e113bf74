#include "nn/layers/conv2d.h"

#include <cmath>

#include "autograd/elementwise.h"
#include "autograd/matmul.h"

namespace longhand::nn {

Conv2d::Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, PatchOptions options)
    : patch(options) {
  const std::int64_t inputs = options.size * options.size * in;
  weight =
      scope.add("weight", {out, inputs}, normal(1 / std::sqrt(static_cast<double>(inputs))), true);
  bias = scope.add("bias", {out}, constant(0), false);
}

Var Conv2d::operator()(const Var& x, std::optional<Activation> f) const {
  const std::int64_t inputs = weight.value().columns();
  weight.require_columns(x, inputs / (patch.size * patch.size));
  const Var pixels = patches(x, patch);
  const Shape& shape = pixels.shape();
  const Var rows = reshape(pixels, {shape.rows(), inputs});
  return reshape(matmul(rows, weight, {.transpose_b = true, .bias = bias, .f = f}),
                 shape.with_back(weight.value().rows()));
}

}  // namespace longhand::nn
