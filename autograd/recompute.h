#pragma once

#include <functional>

#include "autograd/variable.h"

namespace longhand {

/// f(x), storing only x: backward computes f(x) again and differentiates it. f must compute the
/// same values each time. Other values that f uses may also require gradients; if so, `other` must
/// be one of them.
Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f);

}  // namespace longhand
