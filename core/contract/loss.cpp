#include "core/contract/loss.h"

#include "core/contract/require.h"

namespace longhand {
namespace {

/// Checks the logits, targets and weights of CrossEntropy or CrossEntropyBackward.
template <class Op>
void check_choices(Arguments& are, const Op& op) {
  are.floats("logits", op.logits, 1);
  are.require(op.groups >= 1, "groups", "expected at least 1, got ", op.groups);
  are.require(op.logits.columns() % op.groups == 0, "logits",
              "expected a number of columns that is divisible by ", op.groups,
              ", the number of groups, got ", op.logits.shape());
  const Shape choices{op.logits.rows(), op.groups};
  are.in("targets", op.targets, choices, DType::i32);
  if (op.weights) are.in("weights", op.weights, choices, master_type(op.logits.dtype()));
}

template <class Op>
void check_binary(Arguments& are, const Op& op) {
  const DType master = master_type(op.logits.dtype());
  are.floats("logits", op.logits);
  are.in("targets", op.targets, op.logits.shape(), master);
  if (op.weights) are.in("weights", op.weights, op.logits.shape(), master);
}

const Shape one{1};

}  // namespace

void check(const CrossEntropy& op) {
  Arguments are(CrossEntropy::name);
  const DType master = master_type(op.logits.dtype());
  check_choices(are, op);
  are.out("loss", op.loss, one, master);
  if (op.hits) are.out("hits", op.hits, one, master);
  are.out("log_sum", op.log_sum, Shape{op.logits.rows(), op.groups}, master);
  are.out("total", op.total, one, master);
}

void check(const CrossEntropyBackward& op) {
  Arguments are(CrossEntropyBackward::name);
  const DType master = master_type(op.logits.dtype());
  check_choices(are, op);
  are.in("log_sum", op.log_sum, Shape{op.logits.rows(), op.groups}, master);
  are.in("total", op.total, one, master);
  are.in("dloss", op.dloss, one, master);
  are.require(!op.dlogits.add || !op.dlogits.tensor.same_memory(op.logits), "dlogits",
              "expected memory of its own, because the gradient is added to dlogits, got memory "
              "shared with logits");
  are.out("dlogits", op.dlogits, op.logits.shape(), op.logits.dtype(), {"logits"});
}

void check(const BinaryCrossEntropy& op) {
  Arguments are(BinaryCrossEntropy::name);
  const DType master = master_type(op.logits.dtype());
  check_binary(are, op);
  are.out("loss", op.loss, one, master);
  are.out("total", op.total, one, master);
}

void check(const BinaryCrossEntropyBackward& op) {
  Arguments are(BinaryCrossEntropyBackward::name);
  const DType master = master_type(op.logits.dtype());
  check_binary(are, op);
  are.in("total", op.total, one, master);
  are.in("dloss", op.dloss, one, master);
  are.out("dlogits", op.dlogits, op.logits.shape(), op.logits.dtype());
}

}  // namespace longhand
