#pragma once

#include "nn/model.h"

/// The losses of a model's outputs on a batch (autograd/loss.h), as returned by Model::loss().
namespace longhand::nn {

struct ChoiceOptions {
  bool consume_logits = false;  // see CrossEntropyOptions
};

/// Cross entropy of the batch's targets. logits [rows, groups * classes]
Loss cross_entropy(const Var& logits, const PlacedBatch& batch, const ChoiceOptions& options = {});
/// Cross entropy of the logits x weight^T. The logits are computed for a block of rows at a time
/// and, if the batch lists them, only for rows with a scored target
/// (autograd/linear_cross_entropy.h). This is faster if there are many classes.
Loss linear_cross_entropy(const Var& x, const Var& weight, const PlacedBatch& batch);
inline constexpr std::int64_t many_classes = 4096;
/// Binary cross entropy of the batch's values, which must be in [0, 1]. logits [rows, ...]
Loss binary_cross_entropy(const Var& logits, const PlacedBatch& batch);
/// Mean squared difference between y and the batch's values.
Loss squared_error(const Var& y, const PlacedBatch& batch);

}  // namespace longhand::nn
