#pragma once

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "core/backend.h"
#include "core/contract/elementwise.h"

/// Operators on values, as in (a - mean) * b / 2.0 + x % w. Operands are broadcast as described in
/// autograd/combine.h. A number is applied to every entry.
namespace longhand {

inline Var operator+(const Var& a, const Var& b) { return add(a, b); }
inline Var operator-(const Var& a, const Var& b) { return subtract(a, b); }
inline Var operator*(const Var& a, const Var& b) { return multiply(a, b); }
inline Var operator/(const Var& a, const Var& b) { return divide(a, b); }
inline Var operator-(const Var& a) { return scale(a, -1); }
/// Matrix product.
inline Var operator%(const Var& a, const Var& b) { return matmul(a, b); }

/// A tensor with the single entry `value` and the type of x.
inline Var number_like(const Var& x, double value) {
  const Tensor number(x.backend(), {1}, x.value().dtype());
  x.backend()(Fill{.value = value, .y = number});
  return number;
}
inline Var operator+(const Var& a, double b) { return add(a, number_like(a, b)); }
inline Var operator+(double a, const Var& b) { return add(number_like(b, a), b); }
inline Var operator-(const Var& a, double b) { return subtract(a, number_like(a, b)); }
inline Var operator-(double a, const Var& b) { return subtract(number_like(b, a), b); }
inline Var operator*(const Var& a, double b) { return scale(a, b); }
inline Var operator*(double a, const Var& b) { return scale(b, a); }
inline Var operator/(const Var& a, double b) { return divide(a, number_like(a, b)); }
inline Var operator/(double a, const Var& b) { return divide(number_like(b, a), b); }

}  // namespace longhand
