#pragma once

#include <optional>

#include "autograd/variable.h"

namespace longhand {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  Var bias = {};
  std::optional<Activation> f = {};
  Var residual = {};
  std::optional<DType> out = {};  // default: a's type
  std::optional<Math> math = {};  // default: the backend's
};

/// f(alpha op(a) op(b) + bias) + residual, see core/contract/matmul.h.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

}  // namespace longhand
