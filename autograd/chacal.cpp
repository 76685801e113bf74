#include "autograd/chacal.h"

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

HeadsBackward chacal_into(const ScoreVars& s, const HeadVars& v, const Var& gamma, const Heads& y,
                          const Heads& earlier, const Var& sink) {
  const Scores scores = s.value();
  Backend& backend = y.data.backend();
  check_scores("chacal", scores);
  Tensor log_denominator;
  if (recorded({&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &sink, &gamma})) {
    LONGHAND_CHECK(
        !earlier,
        "chacal: keys and values from a cache have no gradient; run chacal without a `Recording`");
    log_denominator = Tensor(backend, {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  backend(Chacal{.scores = scores,
                 .sink = sink.value(),
                 .v = v.value(),
                 .gamma = gamma.value(),
                 .earlier = earlier,
                 .y = y,
                 .log_denominator = log_denominator});
  if (!log_denominator) return {};

  return [scores, q = s.q, k = s.k, v, sinks = ScoreSinks(s), sink, gamma, y, log_denominator](
             const Heads& dy, bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(ChacalBackward{.scores = scores,
                                     .sink = sink.value(),
                                     .v = v.value(),
                                     .y = y,
                                     .dy = dy,
                                     .gamma = gamma.value(),
                                     .log_denominator = log_denominator,
                                     .dq = d.q,
                                     .dk = d.k,
                                     .dv = d.v,
                                     .dscores = sinks.targets(),
                                     .dsink = sink.sink().target(),
                                     .dgamma = gamma.sink().target()});
  };
}

Var chacal(const ScoreVars& s, const HeadVars& v, const Var& gamma, const Heads& earlier,
           const Var& sink) {
  const Heads y = output_heads(s.q, v.width);
  return record_heads("chacal",
                      {&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &sink, &gamma}, y,
                      chacal_into(s, v, gamma, y, earlier, sink));
}

}  // namespace longhand
