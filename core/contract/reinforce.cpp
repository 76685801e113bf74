#include "core/contract/reinforce.h"

#include "core/contract/heads_check.h"

namespace longhand {

void check(const Reinforce& op) {
  const Scores& s = op.scores;
  HeadArguments are(Reinforce::name, s.q);
  are.scores(s, false);
  are.causal(s);
  are.in("log_denominator", op.log_denominator, {s.q.data.rows(), s.q.heads}, are.master());
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.in("pairs", op.pairs, Shape{op.pairs ? op.pairs.rows() : 0, 2}, DType::i32);
  are.in("amounts", op.amounts, Shape{s.q.heads}, are.master());
  are.require(op.threshold >= 0, "threshold", "expected at least 0, got ", op.threshold);
  are.out("y", op.y, s.q.data.rows(), s.q.heads, op.v.width);
}

}  // namespace longhand
