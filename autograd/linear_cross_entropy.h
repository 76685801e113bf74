#pragma once

#include "autograd/variable.h"

namespace longhand {

struct LinearCrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // shaped like targets; empty: all weights are 1
  Tensor hits = {};     // [1]; if given, receives the fraction of targets with the largest logit
  Tensor rows = {};     // i32 [n]: the row of x for each row of `targets`; empty: all rows
  std::int64_t at_once = 256;  // number of rows whose logits are in memory at once
};

/// cross_entropy(x weight^T, targets), without storing the logits of all rows. The rows are
/// processed in blocks. For each block, the logits, the loss and the contributions to both
/// gradients are computed; the next block reuses the memory of the logits. The shapes are x [rows,
/// in], weight [groups * classes, in] and targets i32 [n, groups].
Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});

}  // namespace longhand
