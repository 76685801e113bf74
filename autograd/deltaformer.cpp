#include "autograd/deltaformer.h"

#include <cmath>

#include "autograd/attention.h"
#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

Var deltaformer(const DeltaFormerVars& in, const Heads& earlier) {
  const Heads q = in.q.value(), k = in.k.value(), y = output_heads(in.q, in.v.width);
  const Segments keys = in.keys ? in.keys : in.queries;
  const double scale = in.scale.value_or(1 / std::sqrt(static_cast<double>(in.q.width)));
  check_scores(
      "deltaformer",
      {.q = q, .k = k, .queries = in.queries, .keys = keys, .scale = scale, .math = in.math});
  Heads read;
  Tensor log_denominator;
  if (recorded({&in.q.data, &in.k.data, &in.v.data, &in.gain})) {
    LONGHAND_CHECK(!earlier,
                   "deltaformer: keys and values from a cache have no gradient; run deltaformer "
                   "without a `Recording`");
    log_denominator =
        Tensor(y.data.backend(), {y.data.rows(), y.heads}, master_type(y.data.dtype()));
    read = output_heads(in.q, in.v.width);
  }
  y.data.backend()(DeltaFormer{.q = q,
                               .k = k,
                               .v = in.v.value(),
                               .queries = in.queries,
                               .keys = keys,
                               .scale = scale,
                               .math = in.math,
                               .gain = in.gain.value(),
                               .earlier = earlier,
                               .y = y,
                               .log_denominator = log_denominator,
                               .read = read});
  return record_heads("deltaformer", {&in.q.data, &in.k.data, &in.v.data, &in.gain}, y,
                      [in, keys, scale, y, read, log_denominator](const Heads& dy, bool assign) {
                        const HeadTargets d = targets(in.q, in.k, in.v, assign);
                        dy.data.backend()(DeltaFormerBackward{.q = in.q.value(),
                                                              .k = in.k.value(),
                                                              .queries = in.queries,
                                                              .keys = keys,
                                                              .scale = scale,
                                                              .math = in.math,
                                                              .gain = in.gain.value(),
                                                              .log_denominator = log_denominator,
                                                              .y = y,
                                                              .read = read,
                                                              .dy = dy,
                                                              .dq = d.q,
                                                              .dk = d.k,
                                                              .dv = d.v,
                                                              .dgain = in.gain.sink().target()});
                      });
}

}  // namespace longhand
