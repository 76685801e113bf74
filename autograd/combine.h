#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/combine.h: entry by entry on two operands, one of
/// which is broadcast along axes that it lacks or where it has extent 1.
namespace longhand {

Var add(const Var& a, const Var& b);
Var subtract(const Var& a, const Var& b);
Var multiply(const Var& a, const Var& b);
Var divide(const Var& a, const Var& b);

/// Maximum or minimum of both. If they are equal, the gradient goes to a.
Var maximum(const Var& a, const Var& b);
Var minimum(const Var& a, const Var& b);

/// 1 where the comparison holds and 0 elsewhere, in the operands' type; without a gradient.
Var less(const Var& a, const Var& b);
Var less_or_equal(const Var& a, const Var& b);
Var equal(const Var& a, const Var& b);

/// a where the mask is not 0, b elsewhere. The mask has their type and no gradient.
Var where(const Var& mask, const Var& a, const Var& b);

}  // namespace longhand
