#pragma once

#include <functional>

#include "autograd/variable.h"

namespace longhand {

/// f(x), of whose computation nothing is kept but x: backward computes it again and walks back
/// through that. f must do the same each time. What else it reads may want gradients too: `other`
/// is one such value, if there is one.
Var recomputed(const Var& x, const Var& other, std::function<Var(const Var& x)> f);

}  // namespace longhand
