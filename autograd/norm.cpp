#include "autograd/norm.h"

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

}  // namespace longhand
