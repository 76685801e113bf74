#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Steps over many tensors in one call. Parameters and gradients have the master type; the moments
/// m and v may be bf16.
namespace longhand {

/// Each tensor is cut every `piece` entries, and each piece has one sum:
///   sums[k]_p = sum over entries i of piece p of tensors[k]:  x_i^2
/// sums[k] [pieces(n_k)], of the tensors' type, assigned.
struct SquareSums {
  static constexpr std::string_view name = "square_sums";
  static constexpr std::int64_t piece = 16384;
  static constexpr std::int64_t pieces(std::int64_t size) { return (size + piece - 1) / piece; }
  std::vector<Tensor> tensors, sums;
};

/// norm = sqrt(sum of `squares`), where `squares` are sums of squares from SquareSums.
/// factor = min(1, largest / norm), or 1 if largest = 0 (no clipping). A following Adam or Sgd
/// multiplies the gradients by factor. norm and factor are tensors [1].
///
/// factor is an input as well. It becomes 0 if norm or one of the losses is not finite, and remains
/// 0 if it already was 0. From the first step with non-finite numbers on, training therefore
/// changes nothing, even before the host reads these numbers.
struct GlobalNorm {
  static constexpr std::string_view name = "global_norm";
  Tensor squares;  // [pieces], from SquareSums
  double largest = 0;
  Tensor norm, factor;
  Tensor losses = {};  // [n], of norm's type
};

/// For each parameter w with gradient g' (g = factor g', plus decay w when coupled), at step >= 1:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   m' = m / (1 - beta1^step);  v' = v / (1 - beta2^step)
///   w = w (1 - rate decay) [decoupled] - rate m' / (sqrt(v') + epsilon)
/// Decoupled decay is AdamW, coupled decay is Adam with an L2 penalty. Where factor is 0 nothing
/// changes, whatever the gradients are.
struct Adam {
  static constexpr std::string_view name = "adam";
  std::vector<Tensor> parameters, gradients, m, v;
  std::vector<double> decay;  // one for each parameter
  Tensor now;                 // [3], from adam_now(): the numbers that change from step to step
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = true;
  Tensor factor = {};  // [1], empty: 1
};

/// rate, rate / (1 - beta1^step), 1 / (1 - beta2^step), computed in f64, because 1 - beta^step is
/// small at first.
std::array<double, 3> adam_now(double rate, std::int64_t step, double beta1 = 0.9,
                               double beta2 = 0.999);

/// Gradient descent with momentum. For each parameter w with gradient g' (g = factor g' + decay w):
///   u = momentum u + g;  w = w - rate u
/// Where factor is 0 nothing changes, whatever the gradients are.
struct Sgd {
  static constexpr std::string_view name = "sgd";
  std::vector<Tensor> parameters, gradients, velocities;  // u; of the parameters' type
  std::vector<double> decay;                              // one for each parameter
  Tensor rate;                                            // [1]
  double momentum = 0.9;
  Tensor factor = {};  // [1], empty: 1
};

void check(const SquareSums& op);
void check(const GlobalNorm& op);
void check(const Adam& op);
void check(const Sgd& op);

}  // namespace longhand
