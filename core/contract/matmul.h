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
/// op(a) [m, k], op(b) [k, n], c [m, n]; op transposes where the flag says so. Rank 3 tensors are
/// batches of matrices; a [batch, m, k] with b of rank 2 is one product of [batch m, k].
/// a, b, c, residual, pre and at may be f32 or bf16 in any mix; bias [n] has the master type.
/// With beta = 0, c is not read. k = 0 gives a product of zeros.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  Tensor a, b;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
  Tensor bias = {};                  // empty: none
  std::optional<Activation> f = {};  // none: c = z
  Tensor pre = {};                   // if not empty, stores z, which backward needs
  Tensor residual = {};              // empty: none
  Tensor at = {};  // if not empty: the backward epilogue with f', at = the stored z
  Tensor c;
  double beta = 0;
  std::optional<Math> math = {};  // none: the backend's
};

/// op(a) and op(b) as matrices: batch of [m, k] times [k, n].
struct MatmulExtents {
  std::int64_t batch, m, n, k;
};
MatmulExtents extents(const Matmul& op);

void check(const Matmul& op);

}  // namespace longhand
