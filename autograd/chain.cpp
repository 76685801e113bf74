#include "autograd/chain.h"

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

HeadsBackward chain_into(ChainOf of, const ScoreVars& s, const HeadVars& v, const Var& gain,
                         const Heads& y, const Heads& earlier) {
  const Scores scores = s.value();
  Backend& backend = y.data.backend();
  check_scores("chain", scores);
  Heads read;
  Tensor log_sum;
  if (s.recorded_with(v, gain)) {
    LONGHAND_CHECK(!earlier, "chain: rows from a cache have no gradient; run it without recording");
    log_sum = Tensor(backend, {y.data.rows(), y.heads}, master_type(y.data.dtype()));
    if (of == ChainOf::values) read = output_heads(s.q, v.width);
  }
  backend(Chain{.scores = scores,
                .v = v.value(),
                .gain = gain.value(),
                .earlier = earlier,
                .y = y,
                .log_sum = log_sum,
                .of = of,
                .read = read});
  if (!log_sum) return {};

  return [of, scores, q = s.q, k = s.k, v, sinks = ScoreSinks(s), gain, y, read, log_sum](
             const Heads& dy, bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(ChainBackward{.scores = scores,
                                    .v = v.value(),
                                    .y = y,
                                    .dy = dy,
                                    .gain = gain.value(),
                                    .log_sum = log_sum,
                                    .dq = d.q,
                                    .dk = d.k,
                                    .dv = d.v,
                                    .dscores = sinks.targets(),
                                    .dgain = gain.sink().target(),
                                    .of = of,
                                    .read = read});
  };
}

Var chain(ChainOf of, const ScoreVars& s, const HeadVars& v, const Var& gain,
          const Heads& earlier) {
  const Heads y = output_heads(s.q, v.width);
  return record_heads("chain", {&s.q.data, &s.k.data, &v.data, &s.tau, &s.shift, &s.sink, &gain}, y,
                      chain_into(of, s, v, gain, y, earlier));
}

}  // namespace longhand
