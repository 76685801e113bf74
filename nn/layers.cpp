#include "nn/layers.h"

#include "autograd/feed_forward.h"
#include "autograd/gather.h"
#include "autograd/matmul.h"
#include "autograd/norm.h"

namespace longhand::nn {

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias,
               Initial initial)
    : weight(scope.add("weight", {out, in}, initial, true)),
      bias(with_bias ? scope.add("bias", {out}, constant(0), false) : Parameter()) {}

Var Linear::operator()(const Var& x, const Options& options) const {
  return matmul(x, weight,
                {.transpose_b = true,
                 .bias = bias,
                 .f = options.f,
                 .residual = options.residual,
                 .out = options.out});
}

LayerNorm::LayerNorm(const Scope& scope, std::int64_t width, double added_to_variance)
    : weight(scope.add("weight", {width}, constant(1), false)),
      bias(scope.add("bias", {width}, constant(0), false)),
      epsilon(added_to_variance) {}

Var LayerNorm::operator()(const Var& x) const { return layer_norm(x, weight, bias, epsilon); }

Embedding::Embedding(const Scope& scope, std::int64_t vocabulary, std::int64_t width,
                     Initial initial)
    : weight(scope.add("weight", {vocabulary, width}, initial, true)) {}

Var Embedding::operator()(const Tensor& ids, DType type) const {
  return embedding(weight, ids, type);
}

Var FeedForward::operator()(const Var& x, const Var& residual) const {
  return feed_forward(x, {.up = up.weight,
                          .up_bias = up.bias,
                          .down = down.weight,
                          .down_bias = down.bias,
                          .f = f,
                          .residual = residual});
}

}  // namespace longhand::nn
