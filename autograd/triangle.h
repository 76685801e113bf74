#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/triangle.h.
namespace longhand {

/// Returns alpha x, with all entries above the diagonal set to 0 (below it if `upper` is set). The
/// diagonal consists of the entries (i, i + `diagonal`).
Var triangle(const Var& x, bool upper = false, std::int64_t diagonal = 0, double alpha = 1);

struct SolveOptions {
  bool upper = false, transpose = false, unit = false;
};
/// Returns the solution y of A y = b. The matrix A is `a`, or its transpose if `transpose` is set.
/// Only the lower triangle of `a` is read, or only the upper one if `upper` is set. If `unit` is
/// set, the diagonal of `a` is assumed to be 1.
Var solve_triangular(const Var& a, const Var& b, const SolveOptions& options = {});

}  // namespace longhand
