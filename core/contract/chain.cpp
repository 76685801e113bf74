#include "core/contract/chain.h"

#include <algorithm>

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_inputs(HeadArguments& are, const Op& op, bool backward) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows(), heads = s.q.heads;
  are.scores(s, backward);
  are.softmax_alone(s);
  are.require(s.window == 0, "window", "expected none, got ", s.window);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.require(static_cast<bool>(op.gain), "gain", "expected a tensor, got none");
  if (op.of == ChainOf::attention) {
    are.in("gain", op.gain, Shape{op.gain.size() == 1 ? 1 : heads}, are.master());
    are.require(!op.read, "read", "is only for chains of values");
    return;
  }
  are.require(!s.tau && !s.shift && !s.sink, "scores",
              "expected no tau, shift and sink in a chain of values, got one");
  are.require(s.k.heads == heads, "k", "expected ", heads, " heads, as many as q, got ", s.k.heads);
  are.in("gain", op.gain, {rows, heads}, are.master());
}

}  // namespace

void check(const Chain& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  HeadArguments are(Chain::name, s.q);
  check_inputs(are, op, false);
  if (op.earlier) are.in("earlier", op.earlier, s.keys.rows(), s.q.heads, op.v.width);
  are.require(op.earlier || std::ranges::equal(s.queries.lengths(), s.keys.lengths()), "earlier",
              "expected the rows before the queries, got none");
  are.require(op.of == ChainOf::attention || bool(op.read) == bool(op.log_sum), "read",
              "expected both read and log_sum, or neither");
  are.out("y", op.y, rows, s.q.heads, op.v.width);
  if (op.read) are.out("read", op.read, rows, s.q.heads, op.v.width);
  if (op.log_sum) are.out("log_sum", op.log_sum, {rows, s.q.heads}, are.master());
}

void check(const ChainBackward& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  HeadArguments are(ChainBackward::name, s.q);
  check_inputs(are, op, true);
  are.require(std::ranges::equal(s.queries.lengths(), s.keys.lengths()), "segments",
              "backward expects the queries to be the keys' tokens");
  are.in("y", op.y, rows, s.q.heads, op.v.width);
  if (op.of == ChainOf::values) are.in("read", op.read, rows, s.q.heads, op.v.width);
  are.in("dy", op.dy, rows, s.q.heads, op.v.width);
  are.in("log_sum", op.log_sum, {rows, s.q.heads}, are.master());
  are.out("dq", op.dq, s.q);
  are.out("dk", op.dk, s.k);
  are.out("dv", op.dv, op.v);
  are.out(op.dscores, s);
  if (op.dgain) are.out("dgain", op.dgain.tensor, op.gain.shape(), are.master());
}

}  // namespace longhand
