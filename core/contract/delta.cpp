#include "core/contract/delta.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_delta_inputs(HeadArguments& are, const Op& op) {
  const std::int64_t rows = op.q.data.rows();
  are.in("q", op.q, rows, op.q.heads, -1);
  are.require(op.k.heads >= 1 && op.q.heads % op.k.heads == 0, "k",
              "expected a number of heads that divides ", op.q.heads,
              ", the number of heads of q, got ", op.k.heads);
  are.in("k", op.k, rows, op.k.heads, op.q.width);
  are.require(static_cast<bool>(op.segments), "segments", "expected segments, got none");
  are.require(op.segments.tile() && op.segments.tokens() == rows && op.k.data.rows() == rows,
              "segments", "expected consecutive segments that cover all rows of q (", rows,
              ") and k (", op.k.data.rows(), "), got segments of ", op.segments.tokens(),
              " rows in total");
  are.in("beta", op.beta, {rows, op.k.heads}, are.master());
  if (op.decay) are.in("decay", op.decay, {rows, op.k.heads}, are.master());
}

}  // namespace

void check(const Delta& op) {
  HeadArguments are(Delta::name, op.q);
  check_delta_inputs(are, op);
  const std::int64_t rows = op.q.data.rows(), v_width = op.v.width;
  are.in("v", op.v, rows, op.k.heads, -1);
  const Shape memories{op.segments.count(), delta_memory(op.k, v_width)};
  const bool in_place = op.after && op.before && op.after.same_memory(op.before);
  if (op.before && !in_place) are.in("before", op.before, memories, are.master());
  are.out("y", op.y, rows, op.q.heads, v_width);
  if (op.error) are.out("error", op.error, {rows, op.k.heads * v_width}, are.master());
  if (op.after) are.out("after", op.after, memories, are.master());
}

void check(const DeltaBackward& op) {
  HeadArguments are(DeltaBackward::name, op.q);
  check_delta_inputs(are, op);
  const std::int64_t rows = op.q.data.rows(), v_width = op.dy.width;
  are.in("dy", op.dy, rows, op.q.heads, -1);
  are.in("error", op.error, {rows, op.k.heads * v_width}, are.master());
  are.out("dq", op.dq, op.q);
  are.out("dk", op.dk, op.k);
  if (op.dv) are.out("dv", op.dv.heads, rows, op.k.heads, v_width);
  if (op.dbeta) are.out("dbeta", op.dbeta.tensor, op.beta.shape(), are.master());
  are.require(!op.ddecay || op.decay, "ddecay",
              "expected no tensor, because the input `decay` is missing");
  if (op.ddecay) are.out("ddecay", op.ddecay.tensor, op.beta.shape(), are.master());
}

}  // namespace longhand
