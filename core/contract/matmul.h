#pragma once

#include <optional>
#include <string_view>

#include "core/contract/target.h"
#include "core/formulas.h"
#include "core/math_mode.h"
#include "core/tensor.h"

namespace longhand {

/// A matrix product with one of two fused epilogues:
///   forward: z = alpha op(a) op(b) + bias;  c = f(z) + residual + beta c;
///   backward: c = (alpha op(a) op(b)) * f'(at) + beta c.
/// f is an activation function, `at` is a saved z, and * multiplies entry by entry.
///
/// op(a) is [m, k], op(b) is [k, n], and c is [m, n]. op() is the transpose if transpose_a or
/// transpose_b is set. Tensors of rank 3 are batches of matrices. If a is [batch, m, k] and b has
/// rank 2, a is read as one matrix [batch m, k]. Either all tensors are f64, or bias [n] is f32 and
/// the other tensors are any mix of f32 and bf16. If beta = 0, c is not read. If k = 0, the product
/// is 0.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  Tensor a, b;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  Tensor bias = {};                  // empty: no bias
  std::optional<Activation> f = {};  // activation; default: identity
  Tensor pre = {};                   // if not empty, receives z, the input of the activation f
  Tensor residual = {};              // empty: no residual
  Tensor at = {};                    // saved input of the activation f; empty: forward epilogue
  Tensor c;
  double beta = 0;
  std::optional<Math> math = {};  // default: the backend's math mode
};

/// The extents of a Matmul, which consists of `batch` products of matrices [m, k] and [k, n].
struct MatmulExtents {
  std::int64_t batch, m, n, k;
};
MatmulExtents extents(const Matmul& op);

void check(const Matmul& op);

}  // namespace longhand
