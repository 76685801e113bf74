#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Triangles of square matrices. Rank 3 tensors are batches.
namespace longhand {

/// y_ij = alpha x_ij for j <= i + diagonal (lower) or j >= i + diagonal (upper), otherwise 0. x
/// [..., n, n]. diagonal = -1 with lower keeps the entries strictly below the diagonal.
struct Triangle {
  static constexpr std::string_view name = "triangle";
  Tensor x;
  bool upper = false;
  std::int64_t diagonal = 0;
  double alpha = 1;
  Target y;
};

/// Solves op(a) y = b by substitution. a [..., n, n]: only its lower (or upper) triangle is read.
/// If `unit`, the diagonal is not read and is assumed to consist of ones. op transposes if the flag
/// is set. b, y [..., n, m]; y may be b's memory.
struct SolveTriangular {
  static constexpr std::string_view name = "solve_triangular";
  Tensor a, b;
  bool upper = false, transpose = false, unit = false;
  Tensor y;
};

void check(const Triangle& op);
void check(const SolveTriangular& op);

}  // namespace longhand
