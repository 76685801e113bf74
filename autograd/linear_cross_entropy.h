#pragma once

#include "autograd/variable.h"

namespace longhand {

struct LinearCrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // shaped like targets; empty: all weights are 1
  Tensor hits = {};     // [1]; if given, receives the share of targets that have the largest logit
  Tensor rows = {};     // i32 [n]: rows of x to which `targets` belong; empty: all rows
  std::int64_t at_once = 256;  // number of rows whose logits are in memory at the same time
};

/// cross_entropy(x weight^T, targets) without storing the logits of all rows. For a block of rows
/// at a time, it computes the logits, the loss and the contributions to both gradients; the next
/// block reuses the memory. x [rows, in], weight [groups classes, in], targets i32 [n, groups].
Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});

}  // namespace longhand
