#include "autograd/delta.h"

#include <cmath>

#include "autograd/tape.h"
#include "core/contract/delta.h"
#include "core/error.h"

namespace longhand {

Var delta(const DeltaVars& in, const DeltaMemories& memories) {
  const Heads y = output_heads(in.q, in.v.width);
  const double scale = in.scale.value_or(1 / std::sqrt(static_cast<double>(in.k.width)));
  Tensor error;
  if (recorded({&in.q.data, &in.k.data, &in.v.data, &in.beta, &in.decay})) {
    LONGHAND_CHECK(!memories.before && !memories.after,
                   "delta: a memory from a cache has no gradient; run delta without a `Recording`");
    error = Tensor(y.data.backend(), {y.data.rows(), in.k.heads * in.v.width},
                   master_type(y.data.dtype()));
  }
  y.data.backend()(Delta{.q = in.q.value(),
                         .k = in.k.value(),
                         .v = in.v.value(),
                         .segments = in.segments,
                         .scale = scale,
                         .beta = in.beta.value(),
                         .decay = in.decay.value(),
                         .before = memories.before,
                         .y = y,
                         .error = error,
                         .after = memories.after});
  return record_heads("delta", {&in.q.data, &in.k.data, &in.v.data, &in.beta, &in.decay}, y,
                      [q = in.q, k = in.k, v = HeadVars{in.v}, segments = in.segments, scale,
                       beta = in.beta, decay = in.decay, error](const Heads& dy, bool assign) {
                        const HeadTargets d = targets(q, k, v, assign);
                        dy.data.backend()(DeltaBackward{.q = q.value(),
                                                        .k = k.value(),
                                                        .dy = dy,
                                                        .segments = segments,
                                                        .scale = scale,
                                                        .beta = beta.value(),
                                                        .decay = decay.value(),
                                                        .error = error,
                                                        .dq = d.q,
                                                        .dk = d.k,
                                                        .dv = d.v,
                                                        .dbeta = beta.sink().target(),
                                                        .ddecay = decay.sink().target()});
                      });
}

}  // namespace longhand
