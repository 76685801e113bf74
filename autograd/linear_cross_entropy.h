#pragma once

#include "autograd/variable.h"

namespace longhand {

struct LinearCrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // as the targets; empty: all 1
  Tensor hits = {};     // [1], filled when given: the share of targets that are the largest logit
  Tensor rows = {};     // i32 [n], the rows of x that count; targets are theirs. empty: all
  std::int64_t at_once = 256;  // rows whose logits are there together
};

/// cross_entropy(x weight^T, targets) without ever holding the logits of all rows: those of some
/// rows give their share of the loss and of both gradients at once, and make room for the next.
/// x [rows, in], weight [groups classes, in], targets i32 [n, groups].
Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options = {});

}  // namespace longhand
