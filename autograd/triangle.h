#pragma once

#include "autograd/variable.h"

/// Differentiable forms of core/contract/triangle.h.
namespace longhand {

/// What lies on and below `diagonal` (or on and above, when upper), times alpha; zeros elsewhere.
Var triangle(const Var& x, bool upper = false, std::int64_t diagonal = 0, double alpha = 1);

struct SolveOptions {
  bool upper = false, transpose = false, unit = false;
};
/// y with op(a) y = b
Var solve_triangular(const Var& a, const Var& b, const SolveOptions& options = {});

}  // namespace longhand
