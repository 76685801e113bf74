#pragma once

#include "nn/model.h"

/// Losses of what a model says about a batch (autograd/loss.h), as a trainer wants them.
namespace longhand::nn {

struct ChoiceOptions {
  bool consume_logits = false;  // CrossEntropyOptions has the meaning
};

/// Of the batch's targets: logits [rows, groups * classes].
Loss cross_entropy(const Var& logits, const PlacedBatch& batch, const ChoiceOptions& options = {});
/// Of its values as yes-or-no choices, each in [0, 1]: logits as values.
Loss binary_cross_entropy(const Var& logits, const PlacedBatch& batch);
/// Of its values: y as they are.
Loss squared_error(const Var& y, const PlacedBatch& batch);

}  // namespace longhand::nn
