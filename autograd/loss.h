#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/loss.h.
namespace longhand {

struct CrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // empty: all 1
  Tensor hits = {};     // [1], filled if given: the share of targets that have the largest logit
  /// Backward overwrites the logits with their gradient; they must not be read afterwards.
  bool consume_logits = false;
};

/// The weighted mean over scored targets; a negative target is not scored.
Var cross_entropy(const Var& logits, const Tensor& targets,
                  const CrossEntropyOptions& options = {});
Var binary_cross_entropy(const Var& logits, const Tensor& targets, const Tensor& weights = {});
/// The mean of (x_i - target_i)^2, in the targets' type.
Var squared_error(const Var& x, const Tensor& targets);

}  // namespace longhand
