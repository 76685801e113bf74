#include "autograd/norm.h"

#include <algorithm>

#include "autograd/operators.h"
#include "autograd/reduce.h"
#include "autograd/tape.h"
#include "core/contract/norm.h"

namespace longhand {

Var layer_norm(const Var& x, const Var& gain, const Var& bias, double epsilon) {
  Backend& backend = x.backend();
  const DType master = master_type(x.value().dtype());
  const Tensor y = empty_like(x.value());
  const Tensor mean(backend, {x.value().rows()}, master), rstd = empty_like(mean);
  backend(LayerNorm{.x = x.value(),
                    .gain = gain.value(),
                    .bias = bias.value(),
                    .epsilon = epsilon,
                    .y = y,
                    .mean = mean,
                    .rstd = rstd});
  return record("layer_norm", {&x, &gain, &bias}, y,
                [x, gain, dbias = bias.sink(), mean, rstd](const Tensor& dy) {
                  dy.backend()(LayerNormBackward{.x = x.value(),
                                                 .gain = gain.value(),
                                                 .mean = mean,
                                                 .rstd = rstd,
                                                 .dy = dy,
                                                 .dx = x.sink().target(),
                                                 .dgain = gain.sink().target(),
                                                 .dbias = dbias.target()});
                });
}

Var rms_norm(const Var& x, const Var& gain, double offset, double epsilon) {
  Backend& backend = x.backend();
  const Tensor y = empty_like(x.value());
  const Tensor rstd(backend, {x.value().rows()}, master_type(x.value().dtype()));
  backend(RmsNorm{.x = x.value(),
                  .gain = gain.value(),
                  .offset = offset,
                  .epsilon = epsilon,
                  .y = y,
                  .rstd = rstd});
  return record("rms_norm", {&x, &gain}, y, [x, gain, offset, rstd](const Tensor& dy) {
    dy.backend()(RmsNormBackward{.x = x.value(),
                                 .gain = gain.value(),
                                 .rstd = rstd,
                                 .dy = dy,
                                 .offset = offset,
                                 .dx = x.sink().target(),
                                 .dgain = gain.sink().target()});
  });
}

ColumnMoments column_moments(const Var& x) {
  const std::int64_t rows = x.value().rows();
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(1, rows));
  const Var mean = scale(column_sum(x), share);
  const Var centered = cast(x, mean.value().dtype()) - mean;
  return {mean, scale(column_sum(activate(Activation::square, centered)), share)};
}

Var batch_norm(const Var& x, const ColumnMoments& moments, const Var& gain, const Var& bias,
               double epsilon) {
  const DType type = x.value().dtype();
  // 1 / sqrt(v) = e^(-ln(v) / 2)
  const Var log = activate(Activation::log, moments.variance + epsilon);
  const Var rstd = activate(Activation::exp, scale(log, -0.5));
  return cast((cast(x, master_type(type)) - moments.mean) * (rstd * gain) + bias, type);
}

}  // namespace longhand
