#pragma once

#include "autograd/variable.h"
#include "core/block_matrix.h"

namespace longhand {

struct LinearCrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // shaped like targets; empty: all weights are 1
  Tensor hits = {};     // [1]; if given, receives the accuracy, with the same weights as the loss
  /// i32 [n]: the row of x to which each of the n rows of `targets` belongs. If empty, every row of
  /// x has targets.
  Tensor rows = {};
  std::int64_t at_once = 256;  // number of rows whose logits are in memory at once
};

/// Computes cross_entropy(x weight^T, targets) without storing the logits of all rows. The rows are
/// processed in blocks. For each block, the logits, the loss and the contributions to the gradients
/// of x and weight are computed; the next block reuses the memory of the logits. The shapes are x
/// [rows, in], weight [groups * classes, in] and targets i32 [n, groups]. Each row of targets has
/// one class per group, and groups are independent choices. options.rows selects n rows of x; if it
/// is empty, n is the number of rows of x.
Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});
/// The same for a weight in blocks, which is not trained.
Var linear_cross_entropy(const Var& x, const BlockMatrix& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});

}  // namespace longhand
