#pragma once

#include <memory>

#include "nn/module.h"

namespace longhand::nn {

/// In training, each entry of the input is set to zero with probability `rate`, and all others are
/// multiplied by 1 / (1 - rate) (core/contract/dropout.h). In evaluation, the input is returned
/// unchanged. The model's seed, the step and the layer determine which entries are zeroed
/// (nn/noise.h).
class Dropout {
 public:
  Dropout() = default;
  Dropout(const Scope& scope, double rate);

  Var operator()(const Var& x) const;
  /// False if the input is returned unchanged: in evaluation, and if the rate is 0.
  bool draws() const;

  double rate = 0;

 private:
  std::shared_ptr<Noise> noise_;
  std::uint32_t layer_ = 0;
};

}  // namespace longhand::nn
