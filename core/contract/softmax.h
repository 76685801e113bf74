#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_ij = exp(x_ij - max_i) / sum_k exp(x_ik - max_i), where the sum and max_i include only the
/// visible entries of row i. Entries that are not visible become 0. If `causal` is set, x is a
/// batch of [t, n] matrices, and in row i of a matrix the columns j <= i + (n - t) are visible.
/// Otherwise all entries are visible. A row of -infinities gives zeros.
struct Softmax {
  static constexpr std::string_view name = "softmax";
  Tensor x;
  bool causal = false;
  Tensor y;
};

/// dx_ij = y_ij (dy_ij - sum_k dy_ik y_ik)
struct SoftmaxBackward {
  static constexpr std::string_view name = "softmax_backward";
  Tensor y, dy;
  Target dx;
};

void check(const Softmax& op);
void check(const SoftmaxBackward& op);

}  // namespace longhand
