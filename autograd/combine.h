#pragma once

#include "autograd/variable.h"

/// Differentiable forms of core/contract/combine.h: entry by entry on two operands, of which one is
/// repeated along axes that it lacks or has one entry along.
namespace longhand {

Var add(const Var& a, const Var& b);
Var subtract(const Var& a, const Var& b);
Var multiply(const Var& a, const Var& b);
Var divide(const Var& a, const Var& b);

/// The larger or smaller of the two. Where they are equal, all of the gradient is a's.
Var maximum(const Var& a, const Var& b);
Var minimum(const Var& a, const Var& b);

/// 1 where it holds and 0 elsewhere, in the operands' type; no gradient.
Var less(const Var& a, const Var& b);
Var less_or_equal(const Var& a, const Var& b);
Var equal(const Var& a, const Var& b);

/// a where the mask is not 0, b elsewhere. The mask has their type and no gradient.
Var where(const Var& mask, const Var& a, const Var& b);

}  // namespace longhand
