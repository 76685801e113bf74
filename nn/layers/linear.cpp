#include "nn/layers/linear.h"

#include <cmath>

#include "autograd/matmul.h"

namespace longhand::nn {

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias,
               std::optional<Initial> initial)
    : weight(scope.add("weight", {out, in},
                       initial.value_or(normal(1 / std::sqrt(static_cast<double>(in)))), true)),
      bias(with_bias ? scope.add("bias", {out}, constant(0), false) : Parameter()) {}

Var Linear::operator()(const Var& x, const Options& options) const {
  return matmul(x, weight,
                {.transpose_b = true,
                 .bias = bias,
                 .f = options.f,
                 .residual = options.residual,
                 .out = options.out});
}

}  // namespace longhand::nn
