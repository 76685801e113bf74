#include "nn/losses.h"

#include "autograd/linear_cross_entropy.h"
#include "autograd/loss.h"
#include "core/error.h"

namespace longhand::nn {

Loss cross_entropy(const Var& logits, const PlacedBatch& batch, const ChoiceOptions& options) {
  LONGHAND_CHECK(batch.targets, "cross_entropy: expected a batch with targets, got one without");
  const Tensor hits(logits.backend(), {1}, master_type(logits.value().dtype()));
  return {longhand::cross_entropy(logits, batch.targets,
                                  {.groups = batch.targets.columns(),
                                   .weights = batch.weights,
                                   .hits = hits,
                                   .consume_logits = options.consume_logits}),
          hits};
}

namespace {

/// linear_cross_entropy() for a weight that is a Var or a BlockMatrix. `type` is that of the loss.
template <class Weight>
Loss loss_of_choices(const Var& x, const Weight& weight, DType type, const PlacedBatch& batch) {
  LONGHAND_CHECK(batch.targets,
                 "linear_cross_entropy: expected a batch with targets, got one without");
  const PlacedBatch::Counted& few = batch.counted;
  const Tensor hits(x.backend(), {1}, type);
  return {longhand::linear_cross_entropy(x, weight, few.rows ? few.targets : batch.targets,
                                         {.groups = batch.targets.columns(),
                                          .weights = few.rows ? few.weights : batch.weights,
                                          .hits = hits,
                                          .rows = few.rows}),
          hits};
}

}  // namespace

Loss linear_cross_entropy(const Var& x, const Var& weight, const PlacedBatch& batch) {
  return loss_of_choices(x, weight, master_type(weight.value().dtype()), batch);
}

Loss linear_cross_entropy(const Var& x, const BlockMatrix& weight, const PlacedBatch& batch) {
  return loss_of_choices(x, weight, master_type(x.value().dtype()), batch);
}

Loss binary_cross_entropy(const Var& logits, const PlacedBatch& batch) {
  LONGHAND_CHECK(batch.values,
                 "binary_cross_entropy: expected a batch with values, got one without");
  return {longhand::binary_cross_entropy(logits, batch.values)};
}

Loss squared_error(const Var& y, const PlacedBatch& batch) {
  LONGHAND_CHECK(batch.values, "squared_error: expected a batch with values, got one without");
  return {longhand::squared_error(y, batch.values)};
}

}  // namespace longhand::nn
