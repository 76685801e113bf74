#include "autograd/chacal.h"

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

HeadsBackward chacal_into(const ScoreVars& s, const HeadVars& v, const Var& gamma, const Heads& y,
                          const Heads& earlier) {
  const Scores scores = s.value();
  Backend& backend = y.data.backend();
  check_scores("chacal", scores);
  Tensor log_sum;
  if (s.recorded_with(v, gamma)) {
    LONGHAND_CHECK(!earlier,
                   "chacal: rows from a cache have no gradient; run it without recording");
    log_sum = Tensor(backend, {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  backend(Chacal{.scores = scores,
                 .v = v.value(),
                 .gamma = gamma.value(),
                 .earlier = earlier,
                 .y = y,
                 .log_sum = log_sum});
  if (!log_sum) return {};

  return [scores, q = s.q, k = s.k, v, sinks = ScoreSinks(s), gamma, y, log_sum](const Heads& dy,
                                                                                 bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(ChacalBackward{.scores = scores,
                                     .v = v.value(),
                                     .y = y,
                                     .dy = dy,
                                     .gamma = gamma.value(),
                                     .log_sum = log_sum,
                                     .dq = d.q,
                                     .dk = d.k,
                                     .dv = d.v,
                                     .dscores = sinks.targets(),
                                     .dgamma = gamma.sink().target()});
  };
}

Var chacal(const ScoreVars& s, const HeadVars& v, const Var& gamma, const Heads& earlier) {
  const Heads y = output_heads(s.q, v.width);
  return record_heads("chacal", {&s.q.data, &s.k.data, &v.data, &s.tau, &s.shift, &s.sink, &gamma},
                      y, chacal_into(s, v, gamma, y, earlier));
}

}  // namespace longhand
