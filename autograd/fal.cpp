#include "autograd/fal.h"

#include "autograd/attention.h"
#include "autograd/tape.h"

namespace longhand {

HeadsBackward fal_into(const FalVars& in, const Heads& y, Tensor match) {
  Backend& backend = y.data.backend();
  const Segments keys = in.keys ? in.keys : in.queries;
  check_scores("fal", {.q = in.q.value(), .k = in.k.value(), .queries = in.queries, .keys = keys});
  if (!match) match = Tensor(backend, {y.data.rows(), y.heads}, DType::i32);
  backend(Fal{.q = in.q.value(),
              .k = in.k.value(),
              .v = in.v.value(),
              .queries = in.queries,
              .keys = keys,
              .y = y,
              .match = match});
  if (!recorded({&in.q.data, &in.k.data, &in.v.data})) return {};

  return [in, keys, match](const Heads& dy, bool assign) {
    const HeadTargets d = targets(in.q, in.k, in.v, assign);
    dy.data.backend()(FalBackward{.q = in.q.value(),
                                  .k = in.k.value(),
                                  .v = in.v.value(),
                                  .queries = in.queries,
                                  .keys = keys,
                                  .match = match,
                                  .dy = dy,
                                  .dq = d.q,
                                  .dk = d.k,
                                  .dv = d.v});
  };
}

FalResult fal(const FalVars& in) {
  const Heads y = output_heads(in.q, in.v.width);
  const Tensor match(y.data.backend(), {y.data.rows(), y.heads}, DType::i32);
  const Var out =
      record_heads("fal", {&in.q.data, &in.k.data, &in.v.data}, y, fal_into(in, y, match));
  return {out, match};
}

}  // namespace longhand
