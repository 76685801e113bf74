#include "nn/layers/norm.h"

#include "autograd/norm.h"

namespace longhand::nn {

LayerNorm::LayerNorm(const Scope& scope, std::int64_t width, double added_to_variance)
    : weight(scope.add("weight", {width}, constant(1), false)),
      bias(scope.add("bias", {width}, constant(0), false)),
      epsilon(added_to_variance) {}

Var LayerNorm::operator()(const Var& x) const {
  weight.require_columns(x, weight.value().size());
  return layer_norm(x, weight, bias, epsilon);
}

RmsNorm::RmsNorm(const Scope& scope, std::int64_t width, double added_to_square, bool one_more)
    : weight(scope.add("weight", {width}, constant(one_more ? 0 : 1), false)),
      epsilon(added_to_square),
      plus_one(one_more) {}

Var RmsNorm::operator()(const Var& x) const {
  if (weight) weight.require_columns(x, weight.value().size());
  return rms_norm(x, fixed ? fixed : weight.var(), plus_one ? 1 : 0, epsilon);
}

Norm::Norm(const Scope& scope, std::int64_t width, NormKind kind, double epsilon) {
  if (kind == NormKind::layer) {
    layer_ = LayerNorm(scope, width, epsilon);
  } else {
    rms_ = RmsNorm(scope, width, epsilon, kind == NormKind::rms_plus_one);
  }
}

Var Norm::operator()(const Var& x) const { return layer_.weight ? layer_(x) : rms_(x); }

}  // namespace longhand::nn
