#pragma once

#include <optional>

#include "autograd/variable.h"
#include "core/formulas.h"

namespace longhand {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  Var bias = {};
  std::optional<Activation> f = {};
  Var residual = {};
  std::optional<DType> out = {};  // type of the result; default: the type of `a`
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// Returns f(alpha op(a) op(b) + bias) + residual, where op() is the transposition if transpose_a
/// or transpose_b is set. Without f, no activation is applied. See core/contract/matmul.h.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

}  // namespace longhand
