#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Operations on triangles of square matrices. Tensors of rank 3 are batches of matrices.
namespace longhand {

/// y_ij = alpha x_ij for j <= i + diagonal (or j >= i + diagonal if `upper` is set), otherwise 0. x
/// [..., n, n]. diagonal = -1 without `upper` keeps the entries strictly below the diagonal.
struct Triangle {
  static constexpr std::string_view name = "triangle";
  Tensor x;
  bool upper = false;
  std::int64_t diagonal = 0;
  double alpha = 1;
  Target y;
};

/// Solves op(a) y = b by substitution. Only the lower (or upper) triangle of a [..., n, n] is read.
/// If `unit` is set, the diagonal of a is not read and is assumed to consist of ones. op(a) is the
/// transpose of a if `transpose` is set. b, y [..., n, m]; y may share the memory of b.
struct SolveTriangular {
  static constexpr std::string_view name = "solve_triangular";
  Tensor a, b;
  bool upper = false, transpose = false, unit = false;
  Tensor y;
};

void check(const Triangle& op);
void check(const SolveTriangular& op);

}  // namespace longhand
