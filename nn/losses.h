#pragma once

#include "nn/model.h"

/// Loss functions for use in Model::loss() (autograd/loss.h).
namespace longhand::nn {

struct ChoiceOptions {
  bool consume_logits = false;  // if true, backward overwrites the logits with their gradient
};

/// Cross entropy of the batch's targets. The shape of the logits is [rows, groups * classes].
Loss cross_entropy(const Var& logits, const PlacedBatch& batch, const ChoiceOptions& options = {});
/// Cross entropy of the logits x weight^T. The logits are computed for one block of rows at a time
/// (autograd/linear_cross_entropy.h). If the batch lists the rows that have a scored target, all
/// other rows are skipped. For at least many_classes classes, this function is faster than
/// cross_entropy().
Loss linear_cross_entropy(const Var& x, const Var& weight, const PlacedBatch& batch);
Loss linear_cross_entropy(const Var& x, const BlockMatrix& weight, const PlacedBatch& batch);
inline constexpr std::int64_t many_classes = 4096;
/// Binary cross entropy of the batch's values, which must be in [0, 1]. The logits have the same
/// shape as the values.
Loss binary_cross_entropy(const Var& logits, const PlacedBatch& batch);
/// Mean squared difference between y and the batch's values.
Loss squared_error(const Var& y, const PlacedBatch& batch);

}  // namespace longhand::nn
