#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/triangle.h.
namespace longhand {

/// The entries on and below `diagonal` (on and above, if upper), times alpha; zeros elsewhere.
Var triangle(const Var& x, bool upper = false, std::int64_t diagonal = 0, double alpha = 1);

struct SolveOptions {
  bool upper = false, transpose = false, unit = false;
};
/// Solves op(a) y = b for y.
Var solve_triangular(const Var& a, const Var& b, const SolveOptions& options = {});

}  // namespace longhand
