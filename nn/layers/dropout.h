#pragma once

#include <memory>

#include "nn/module.h"

namespace longhand::nn {

/// In training each entry is 0 with probability `rate`, and the others are 1 / (1 - rate) times as
/// large (core/contract/dropout.h); in evaluation, x. Which entries is a matter of the model's
/// seed, the step and the layer (nn/noise.h).
class Dropout {
 public:
  Dropout() = default;
  Dropout(const Scope& scope, double rate);

  Var operator()(const Var& x) const;

  double rate = 0;

 private:
  std::shared_ptr<Noise> noise_;
  std::uint32_t layer_ = 0;
};

}  // namespace longhand::nn
