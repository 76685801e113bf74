#include "autograd/reinforce.h"

#include "core/contract/reinforce.h"
#include "core/error.h"

namespace longhand {

void reinforced_attention_into(const ScoreVars& s, const HeadVars& v, const Reinforcement& by,
                               const Heads& y, const Var& sink) {
  LONGHAND_CHECK(!recorded({&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &sink}),
                 "reinforced attention has no gradient: a model with reinforced heads can be run "
                 "but not trained");
  const Scores scores = s.value();
  Backend& backend = y.data.backend();
  check_scores("attention", scores);
  const Tensor log_denominator(backend, {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  backend(Attention{.scores = scores,
                    .rule = SoftmaxRule{.sink = sink.value(), .log_denominator = log_denominator},
                    .v = v.value(),
                    .y = y});
  if (!by.pairs) return;
  backend(Reinforce{.scores = scores,
                    .log_denominator = log_denominator,
                    .v = v.value(),
                    .pairs = by.pairs,
                    .amounts = by.amounts,
                    .threshold = by.threshold,
                    .y = y});
}

Tensor reinforced_attention(const ScoreVars& s, const HeadVars& v, const Reinforcement& by,
                            const Var& sink) {
  const Heads y = output_heads(s.q, v.width);
  reinforced_attention_into(s, v, by, y, sink);
  return y.data;
}

}  // namespace longhand
