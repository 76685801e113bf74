#pragma once

#include "autograd/variable.h"
#include "core/formulas.h"

/// Differentiable operations of core/contract/elementwise.h.
namespace longhand {

Var scale(const Var& x, double alpha);
Var cast(const Var& x, DType dtype);
Var activate(Activation f, const Var& x);
Var gate(Activation f, const Var& x);  // x [rows, 2w] -> f(first w columns) * last w columns
Var add_bias(const Var& x, const Var& bias, const Var& residual = {});
Var reshape(const Var& x, const Shape& shape);
/// Returns the entries first .. first + count - 1 of x along the first axis.
Var slice(const Var& x, std::int64_t first, std::int64_t count);

}  // namespace longhand
