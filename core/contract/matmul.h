#pragma once

#include <optional>
#include <string_view>

#include "core/contract/target.h"
#include "core/formulas.h"
#include "core/math_mode.h"
#include "core/tensor.h"

namespace longhand {

/// z = alpha op(a) op(b) + bias;  c = f(z) + residual + beta c        (forward epilogue)
/// c = (alpha op(a) op(b)) * f'(at) + beta c                          (backward epilogue)
///
/// op(a) [m, k], op(b) [k, n], c [m, n]. op() is the transpose if transpose_a or transpose_b is
/// set. Tensors of rank 3 are batches of matrices. If a is [batch, m, k] and b has rank 2, a is
/// read as one matrix [batch m, k]. a, b, c, residual, pre and at may be any mix of f32 and bf16.
/// bias [n] has the master type. If beta = 0, c is not read. If k = 0, the product is 0.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  Tensor a, b;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  Tensor bias = {};                  // empty: no bias
  std::optional<Activation> f = {};  // default: f(z) = z
  Tensor pre = {};                   // if not empty, receives z for the backward pass
  Tensor residual = {};              // empty: no residual
  Tensor at = {};                    // if not empty, the saved z for the backward epilogue
  Tensor c;
  double beta = 0;
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// The extents of op(a) and op(b): `batch` products of [m, k] and [k, n].
struct MatmulExtents {
  std::int64_t batch, m, n, k;
};
MatmulExtents extents(const Matmul& op);

void check(const Matmul& op);

}  // namespace longhand
