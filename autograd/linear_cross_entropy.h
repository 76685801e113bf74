#pragma once

#include "autograd/variable.h"

namespace longhand {

struct LinearCrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // shape of targets; empty: all 1
  Tensor hits = {};     // [1], filled if given: the share of targets that have the largest logit
  Tensor rows = {};     // i32 [n], the scored rows of x, which `targets` belong to; empty: all rows
  std::int64_t at_once = 256;  // number of rows whose logits are in memory together
};

/// cross_entropy(x weight^T, targets) without storing the logits of all rows. The logits of some
/// rows at a time contribute to the loss and both gradients, then the next rows reuse their memory.
/// x [rows, in], weight [groups classes, in], targets i32 [n, groups].
Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});

}  // namespace longhand
