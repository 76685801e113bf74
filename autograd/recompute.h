#pragma once

#include <functional>

#include "autograd/variable.h"

namespace longhand {

/// f(x), storing only x: backward computes f again and differentiates that. f must compute the same
/// each time. Other values that f reads may also require gradients: `other` is one of them, if any
/// does.
Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f);

}  // namespace longhand
