#pragma once

#include <string_view>
#include <vector>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Steps over many tensors in one call. Parameters and gradients have the master type; the moments
/// m and v may be bf16.
namespace longhand {

/// norm = sqrt(sum over all tensors and entries of x^2);  factor = min(1, largest / norm), which a
/// following Adam multiplies into the gradients. largest = 0: no clipping, factor 1. norm, factor
/// [1]
struct GlobalNorm {
  static constexpr std::string_view name = "global_norm";
  std::vector<Tensor> tensors;
  double largest = 0;
  Tensor norm, factor;
};

/// For each parameter w with gradient g' (g = factor g', plus decay w when coupled), at step >= 1:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   w = w (1 - rate decay) [decoupled] - rate (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step))
///   + epsilon)
/// decoupled decay is AdamW, coupled decay is Adam with an L2 penalty.
struct Adam {
  static constexpr std::string_view name = "adam";
  std::vector<Tensor> parameters, gradients, m, v;
  std::vector<double> decay;  // one for each parameter
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = true;
  std::int64_t step = 1;
  Tensor factor = {};  // [1], empty: 1
};

void check(const GlobalNorm& op);
void check(const Adam& op);

}  // namespace longhand
