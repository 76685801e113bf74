#pragma once

#include <cstdint>

#include "autograd/variable.h"

namespace longhand {

/// Selects the random numbers of a dropout; see core/contract/dropout.h.
struct DropoutDraw {
  double rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t index = 0;
  Tensor step = {};  // number of the training step, i32 [1]
};

/// Differentiable operation of core/contract/dropout.h.
Var dropout(const Var& x, const DropoutDraw& draw);

}  // namespace longhand
