#pragma once

#include <functional>

#include "autograd/variable.h"

namespace longhand {

/// f(x), which stores only x: backward computes f(x) again and differentiates it. f must compute
/// the same values each time. If other values that f uses require gradients, `other` must be one of
/// them.
Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f);

}  // namespace longhand
