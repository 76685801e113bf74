#include "nn/layers/norm.h"

#include "autograd/norm.h"
#include "autograd/operators.h"
#include "core/error.h"

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

BatchNorm::BatchNorm(const Scope& scope, std::int64_t channels, double part,
                     double added_to_variance)
    : weight(scope.add("weight", {channels}, constant(1), false)),
      bias(scope.add("bias", {channels}, constant(0), false)),
      running_mean(scope.add_buffer("running_mean", {channels}, 0)),
      running_variance(scope.add_buffer("running_variance", {channels}, 1)),
      momentum(part),
      epsilon(added_to_variance),
      noise_(scope.parameters().noise()) {
  LONGHAND_CHECK(momentum >= 0 && momentum <= 1, "layer ", scope.name(),
                 ": expected a momentum from 0 to 1, got ", momentum);
}

Var BatchNorm::operator()(const Var& x) const {
  weight.require_columns(x, weight.value().size());
  if (!noise_->training()) {
    return batch_norm(x, {running_mean.value(), running_variance.value()}, weight, bias, epsilon);
  }
  const std::int64_t rows = x.value().rows();
  LONGHAND_CHECK(rows >= 2, "layer ", weight.layer(),
                 ": expected a batch of at least 2 rows in training, got ", rows);
  const ColumnMoments batch = column_moments(x);
  const auto n = static_cast<double>(rows);
  propose(running_mean, batch.mean.value(), 1);
  propose(running_variance, batch.variance.value(), n / (n - 1));
  return batch_norm(x, batch, weight, bias, epsilon);
}

/// Computes the next value of `running`, a running mean or variance. The optimizer's step assigns
/// this value later (see Buffer::propose()). The value is
///   running + momentum * (m - running),
/// where m = factor * moment is the mean or the unbiased variance of the batch.
void BatchNorm::propose(const Buffer& running, const Tensor& moment, double factor) const {
  const Var old = running.latest();
  running.propose((old + momentum * (factor * Var(moment) - old)).value());
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
