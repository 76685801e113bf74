#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/loss.h.
namespace longhand {

struct CrossEntropyOptions {
  std::int64_t groups = 1;
  Tensor weights = {};  // empty: all weights are 1
  Tensor hits = {};     // [1]; if given, receives the accuracy, with the same weights as the loss
  /// If true, backward overwrites the logits with their gradient. The logits must not be used
  /// afterwards.
  bool consume_logits = false;
};

/// The weighted mean of the cross entropy over all targets. A negative target is not counted.
Var cross_entropy(const Var& logits, const Tensor& targets,
                  const CrossEntropyOptions& options = {});
Var binary_cross_entropy(const Var& logits, const Tensor& targets, const Tensor& weights = {});
/// The mean over all entries of (x_i - target_i)^2, in the type of the targets.
Var squared_error(const Var& x, const Tensor& targets);

}  // namespace longhand
