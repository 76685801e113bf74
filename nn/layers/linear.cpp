#include "nn/layers/linear.h"

#include <cmath>

#include "autograd/blocks.h"
#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "core/error.h"

namespace longhand::nn {

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias,
               std::optional<Initial> initial)
    : weight(scope.add("weight", {out, in},
                       initial.value_or(normal(1 / std::sqrt(static_cast<double>(in)))), true)),
      bias(with_bias ? scope.add("bias", {out}, constant(0), false) : Parameter()) {
  weight.accept_blocks();
}

Var Linear::operator()(const Var& x, const Options& options) const {
  LONGHAND_CHECK(
      adapters.empty() || !options.f,
      "linear: expected no activation, because the layer has adapters, which add to its product");
  weight.require_columns(x, weight.shape().columns());
  Var y = weight.blocks() ? of_blocks(x, options)
                          : matmul(x, weight,
                                   {.transpose_b = true,
                                    .bias = bias,
                                    .f = options.f,
                                    .residual = options.residual,
                                    .out = options.out});
  for (const Lora& adapter : adapters) y = adapter(y, x);
  return y;
}

Var Linear::of_blocks(const Var& x, const Options& options) const {
  const Var residual = options.f ? Var() : options.residual;
  const Var z =
      block_matmul(x, weight.blocks(), {.bias = bias, .residual = residual, .out = options.out});
  if (!options.f) return z;
  const Var y = activate(*options.f, z);
  return options.residual ? y + options.residual : y;
}

}  // namespace longhand::nn
