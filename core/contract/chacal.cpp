#include "core/contract/chacal.h"

#include <algorithm>

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_chacal(HeadArguments& are, const Op& op, bool backward) {
  const Scores& s = op.scores;
  are.scores(s, backward);
  are.causal(s);
  if (op.sink) are.in("sink", op.sink, Shape{s.q.heads}, are.master());
  are.require(s.window == 0, "window", "expected no window, got a window of ", s.window);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.require(static_cast<bool>(op.gamma), "gamma", "expected a tensor, got none");
  are.in("gamma", op.gamma, Shape{op.gamma.size() == 1 ? 1 : s.q.heads}, are.master());
}

}  // namespace

void check(const Chacal& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  HeadArguments are(Chacal::name, s.q);
  check_chacal(are, op, false);
  are.earlier(op.earlier, s.queries, s.keys, s.q.heads, op.v.width);
  are.out("y", op.y, rows, s.q.heads, op.v.width);
  if (op.log_denominator) {
    are.out("log_denominator", op.log_denominator, {rows, s.q.heads}, are.master());
  }
}

void check(const ChacalBackward& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  HeadArguments are(ChacalBackward::name, s.q);
  check_chacal(are, op, true);
  are.same_tokens(s.queries, s.keys);
  are.in("y", op.y, rows, s.q.heads, op.v.width);
  are.in("dy", op.dy, rows, s.q.heads, op.v.width);
  are.in("log_denominator", op.log_denominator, {rows, s.q.heads}, are.master());
  are.out("dq", op.dq, s.q);
  are.out("dk", op.dk, s.k);
  are.out("dv", op.dv, op.v);
  are.out(op.dscores, s);
  are.out("dsink", op.dsink, op.sink);
  are.out("dgamma", op.dgamma, op.gamma);
}

}  // namespace longhand
