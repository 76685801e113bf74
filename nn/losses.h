#pragma once

#include "nn/model.h"

/// Losses of what a model says about a batch (autograd/loss.h), as a trainer wants them.
namespace longhand::nn {

struct ChoiceOptions {
  bool consume_logits = false;  // CrossEntropyOptions has the meaning
};

/// Of the batch's targets: logits [rows, groups * classes].
Loss cross_entropy(const Var& logits, const PlacedBatch& batch, const ChoiceOptions& options = {});
/// Of outputs that are a product of x and `weight`, the logits of some rows at a time, and of the
/// counted rows alone where the batch lists them (autograd/linear_cross_entropy.h). It pays where
/// the classes are many.
Loss linear_cross_entropy(const Var& x, const Var& weight, const PlacedBatch& batch);
inline constexpr std::int64_t many_classes = 4096;
/// Of its values as yes-or-no choices, each in [0, 1]: logits as values.
Loss binary_cross_entropy(const Var& logits, const PlacedBatch& batch);
/// Of its values: y as they are.
Loss squared_error(const Var& y, const PlacedBatch& batch);

}  // namespace longhand::nn
