#include "core/contract/deltaformer.h"

#include "core/contract/heads_check.h"

namespace longhand {
namespace {

template <class Op>
void check_deltaformer(HeadArguments& are, const Op& op, bool backward) {
  are.queries_and_keys(op.q, op.k, op.queries, op.keys, backward);
  are.require(op.k.heads == op.q.heads, "k", "expected ", op.q.heads,
              " heads, the number of heads of q, got ", op.k.heads);
  are.in("gain", op.gain, {op.q.data.rows(), op.q.heads}, are.master());
}

}  // namespace

void check(const DeltaFormer& op) {
  const std::int64_t rows = op.q.data.rows(), heads = op.q.heads, width = op.v.width;
  HeadArguments are(DeltaFormer::name, op.q);
  check_deltaformer(are, op, false);
  are.in("v", op.v, op.keys.rows(), heads, -1);
  are.earlier(op.earlier, op.queries, op.keys, heads, width);
  are.require(bool(op.read) == bool(op.log_denominator), "read",
              "expected both outputs, `read` and `log_denominator`, or neither");
  are.out("y", op.y, rows, heads, width);
  if (op.read) are.out("read", op.read, rows, heads, width);
  if (op.log_denominator)
    are.out("log_denominator", op.log_denominator, {rows, heads}, are.master());
}

void check(const DeltaFormerBackward& op) {
  const std::int64_t rows = op.q.data.rows(), heads = op.q.heads, width = op.y.width;
  HeadArguments are(DeltaFormerBackward::name, op.q);
  check_deltaformer(are, op, true);
  are.same_tokens(op.queries, op.keys);
  are.in("y", op.y, rows, heads, -1);
  are.in("read", op.read, rows, heads, width);
  are.in("dy", op.dy, rows, heads, width);
  are.in("log_denominator", op.log_denominator, {rows, heads}, are.master());
  are.out("dq", op.dq, op.q);
  are.out("dk", op.dk, op.k);
  are.out("dv", op.dv, op.y);
  are.out("dgain", op.dgain, op.gain);
}

}  // namespace longhand
