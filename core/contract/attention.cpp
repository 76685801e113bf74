#include "core/contract/attention.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

void require_residue(const HeadArguments& are, const Scores& s, const Heads& y) {
  are.require(s.rule == Rule::stick && y.data.dtype() == DType::bf16, "residue",
              "is only for the rule stick in bf16");
}

}  // namespace

std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads) {
  std::int64_t size = 0;
  for (std::size_t s = 0; s < queries.lengths().size(); ++s) {
    size += heads * std::int64_t{queries.lengths()[s]} * keys.lengths()[s];
  }
  return size;
}

void check(const Attention& op) {
  const Scores& s = op.scores;
  HeadArguments are(Attention::name, s.q);
  are.scores(s, false);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.out("y", op.y, s.q.data.rows(), s.q.heads, op.v.width);
  if (op.log_sum) are.out("log_sum", op.log_sum, {s.q.data.rows(), s.q.heads}, are.master());
  if (op.mean) {
    are.require(s.rule == Rule::entmax, "mean", "is only for the rule entmax");
    are.out("mean", op.mean, s.q.data.rows(), s.q.heads, op.v.width);
  }
  if (op.residue) {
    require_residue(are, s, op.y);
    are.out("residue", op.residue, s.q.data.rows(), s.q.heads, op.v.width);
  }
}

void check(const AttentionBackward& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionBackward::name, s.q);
  are.scores(s, true);
  are.in("v", op.v, s.keys.rows(), s.k.heads, -1);
  are.in("y", op.y, s.q.data.rows(), s.q.heads, op.v.width);
  are.in("dy", op.dy, s.q.data.rows(), s.q.heads, op.v.width);
  if (op.residue) {
    require_residue(are, s, op.y);
    are.in("residue", op.residue, s.q.data.rows(), s.q.heads, op.v.width);
  }
  if (s.rule != Rule::stick) {
    are.in("log_sum", op.log_sum, {s.q.data.rows(), s.q.heads}, are.master());
  }
  are.out("dq", op.dq, s.q);
  are.out("dk", op.dk, s.k);
  are.out("dv", op.dv, op.v);
  are.out(op.dscores, s);
}

void check(const AttentionWeights& op) {
  const Scores& s = op.scores;
  HeadArguments are(AttentionWeights::name, s.q);
  are.scores(s, false);
  are.out("weights", op.weights, Shape{weights_size(s.queries, s.keys, s.q.heads)}, are.master());
}

void check(const FindBadScore& op) {
  HeadArguments are(FindBadScore::name, op.scores.q);
  are.scores(op.scores, false);
  are.out("found", op.found, Shape{4}, DType::i32);
}

}  // namespace longhand
