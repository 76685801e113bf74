#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_ij = exp(x_ij - max_i) / sum_k exp(x_ik - max_i) over the row's visible entries, 0 elsewhere.
/// All are visible, or, when causal, x is a batch of [t, n] matrices and row i sees columns
/// j <= i + (n - t). A row of -infinities gives zeros.
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
