#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/combine.h: elementwise operations with two operands.
/// An operand is broadcast along each axis that it lacks or in which its extent is 1.
namespace longhand {

Var add(const Var& a, const Var& b);
Var subtract(const Var& a, const Var& b);
Var multiply(const Var& a, const Var& b);
Var divide(const Var& a, const Var& b);

/// Elementwise maximum and minimum. Where the operands are equal, only `a` receives the gradient.
Var maximum(const Var& a, const Var& b);
Var minimum(const Var& a, const Var& b);

/// 1 where the comparison is true, otherwise 0. The result has the operands' type and no gradient.
Var less(const Var& a, const Var& b);
Var less_or_equal(const Var& a, const Var& b);
Var equal(const Var& a, const Var& b);

/// Selects the entry of `a` where the mask is not 0, otherwise the entry of `b`. The mask has the
/// type of `a` and `b`, and no gradient.
Var where(const Var& mask, const Var& a, const Var& b);

}  // namespace longhand
