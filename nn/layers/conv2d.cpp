#include "nn/layers/conv2d.h"

#include <cmath>
#include <string>

#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "core/error.h"

namespace longhand::nn {

Conv2d::Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, PatchOptions options)
    : patch(options) {
  const std::string layer = text("layer ", scope.name());
  options.check(layer);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  LONGHAND_CHECK(in >= 1 && in <= most && out >= 1 && out <= most, layer, ": expected 1 to ", most,
                 " input channels and output channels, got ", in, " and ", out);
  const std::int64_t inputs = options.size * options.size * in;
  weight =
      scope.add("weight", {out, inputs}, normal(1 / std::sqrt(static_cast<double>(inputs))), true);
  bias = scope.add("bias", {out}, constant(0), false);
}

Var Conv2d::operator()(const Var& x, std::optional<Activation> f) const {
  patch.check(text("layer ", weight.layer()));
  const std::int64_t inputs = weight.value().columns();
  weight.require_columns(x, inputs / (patch.size * patch.size));
  const Var pixels = patches(x, patch);
  const Shape& shape = pixels.shape();
  const Var rows = reshape(pixels, {shape.rows(), inputs});
  return reshape(matmul(rows, weight, {.transpose_b = true, .bias = bias, .f = f}),
                 shape.with_back(weight.value().rows()));
}

}  // namespace longhand::nn
