#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/norm.h, which normalize the last axis.
namespace longhand {

Var layer_norm(const Var& x, const Var& gain, const Var& bias, double epsilon = 1e-5);
Var rms_norm(const Var& x, const Var& gain, double offset = 0, double epsilon = 1e-6);

}  // namespace longhand
