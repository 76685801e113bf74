#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/combine.h: elementwise, with two operands. An operand
/// is broadcast along axes that it lacks or in which its extent is 1.
namespace longhand {

Var add(const Var& a, const Var& b);
Var subtract(const Var& a, const Var& b);
Var multiply(const Var& a, const Var& b);
Var divide(const Var& a, const Var& b);

/// Elementwise maximum and minimum. If both operands are equal, a receives the gradient.
Var maximum(const Var& a, const Var& b);
Var minimum(const Var& a, const Var& b);

/// 1 where the comparison is true, otherwise 0, in the type of the operands. There is no gradient.
Var less(const Var& a, const Var& b);
Var less_or_equal(const Var& a, const Var& b);
Var equal(const Var& a, const Var& b);

/// a where the mask is not 0, otherwise b. The mask has the same type and no gradient.
Var where(const Var& mask, const Var& a, const Var& b);

}  // namespace longhand
