#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Operations on triangles of square matrices. Tensors of rank 3 are batches of matrices.
namespace longhand {

/// y_ij = alpha x_ij for j <= i + diagonal (or j >= i + diagonal if `upper` is set), otherwise 0. x
/// and y have the shape [..., n, n]. Without `upper`, diagonal = -1 keeps the entries strictly
/// below the diagonal.
struct Triangle {
  static constexpr std::string_view name = "triangle";
  Tensor x;
  bool upper = false;
  std::int64_t diagonal = 0;
  double alpha = 1;
  Target y;
};

/// Solves the system a y = b by substitution, or a^T y = b if `transpose` is set. Only the lower
/// triangle of a is read, or only the upper triangle if `upper` is set. If `unit` is set, the
/// diagonal of a is not read and is assumed to consist of ones. The matrices a have the shape
/// [..., n, n], and b and y have the shape [..., n, m]. y may share the memory of b.
struct SolveTriangular {
  static constexpr std::string_view name = "solve_triangular";
  Tensor a, b;
  bool upper = false, transpose = false, unit = false;
  Tensor y;
};

void check(const Triangle& op);
void check(const SolveTriangular& op);

}  // namespace longhand
