#pragma once

#include <functional>

#include "autograd/variable.h"

namespace longhand {

/// Returns f(x) and stores only x. The backward pass computes f(x) again and differentiates it. f
/// must compute the same values each time. If f also uses other values that require gradients, pass
/// one of them as `other`, so that the result requires a gradient even if x does not.
Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f);

}  // namespace longhand
