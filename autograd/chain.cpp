#include "autograd/chain.h"

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

Var chain(const ScoreVars& s, const HeadVars& v, const Var& gain, const Heads& earlier) {
  const Scores scores = s.value();
  check_scores("chain", scores);
  const Heads y = output_heads(s.q, v.width);
  Heads read;
  Tensor log_sum;
  if (s.recorded_with(v, gain)) {
    LONGHAND_CHECK(!earlier, "chain: rows from a cache have no gradient; expected none recorded");
    read = output_heads(s.q, v.width);
    log_sum = Tensor(y.data.backend(), {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  y.data.backend()(Chain{.scores = scores,
                         .v = v.value(),
                         .gain = gain.value(),
                         .earlier = earlier,
                         .y = y,
                         .read = read,
                         .log_sum = log_sum});
  return record_heads(
      "chain", {&s.q.data, &s.k.data, &v.data, &gain}, y,
      [scores, q = s.q, k = s.k, v, gain, y, read, log_sum](const Heads& dy, bool assign) {
        const HeadTargets d = targets(q, k, v, assign);
        dy.data.backend()(ChainBackward{.scores = scores,
                                        .y = y,
                                        .read = read,
                                        .dy = dy,
                                        .gain = gain.value(),
                                        .log_sum = log_sum,
                                        .dq = d.q,
                                        .dk = d.k,
                                        .dv = d.v,
                                        .dgain = gain.sink().target()});
      });
}

}  // namespace longhand
