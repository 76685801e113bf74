#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/triangle.h.
namespace longhand {

/// The entries on and below `diagonal` (on and above it if `upper` is set), multiplied by alpha.
/// All other entries are 0.
Var triangle(const Var& x, bool upper = false, std::int64_t diagonal = 0, double alpha = 1);

struct SolveOptions {
  bool upper = false, transpose = false, unit = false;
};
/// The solution y of op(a) y = b.
Var solve_triangular(const Var& a, const Var& b, const SolveOptions& options = {});

}  // namespace longhand
