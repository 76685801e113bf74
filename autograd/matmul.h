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

/// Returns f(alpha op(a) op(b) + bias) + residual, where op(a) is the transpose of `a` if
/// transpose_a is set and otherwise `a`, and op(b) likewise. Without f, no activation is applied.
/// See core/contract/matmul.h.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

}  // namespace longhand
