#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/reduce.h. Results have the master type: f64 for f64,
/// otherwise f32.
namespace longhand {

Var column_sum(const Var& x);  // [rows, n] -> [n]
Var row_sum(const Var& x);     // [rows, n] -> [rows]
Var sum(const Var& x);         // all entries -> [1]
Var mean(const Var& x);        // all entries -> [1]
Var row_max(const Var& x);     // [rows, n] -> [rows]; the gradient goes to the first maximum

/// Reductions along one axis, which is removed. A negative axis counts from the end.
Var sum(const Var& x, int axis);
Var mean(const Var& x, int axis);
Var max(const Var& x, int axis);  // the gradient goes to the first maximum

}  // namespace longhand
