#include "core/contract/fal.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_fal(HeadArguments& are, const Op& op, bool backward) {
  are.queries_and_keys(op.q, op.k, op.queries, op.keys, backward);
  are.in("v", op.v, op.keys.rows(), op.k.heads, -1);
}

}  // namespace

void check(const Fal& op) {
  HeadArguments are(Fal::name, op.q);
  check_fal(are, op, false);
  are.out("y", op.y, op.q.data.rows(), op.q.heads, op.v.width);
  are.out("match", op.match, {op.q.data.rows(), op.q.heads}, DType::i32);
}

void check(const FalBackward& op) {
  HeadArguments are(FalBackward::name, op.q);
  check_fal(are, op, true);
  are.in("match", op.match, {op.q.data.rows(), op.q.heads}, DType::i32);
  are.in("dy", op.dy, op.q.data.rows(), op.q.heads, op.v.width);
  are.out("dq", op.dq, op.q);
  are.out("dk", op.dk, op.k);
  are.out("dv", op.dv, op.v);
}

}  // namespace longhand
