#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/contract/target.h"
#include "core/tensor.h"

/// Optimizer steps over many tensors in one call. Parameters and gradients are all f32 or all f64.
/// The moments m and v of Adam may be bf16 if the parameters are f32.
namespace longhand {

/// Divides each tensor into pieces of `piece` entries and computes the sum of squares of each
/// piece. With x = tensors[k],
///   sums[k]_p = sum of x_i^2 over the entries i of piece p.
/// sums[k] has one entry per piece, [pieces(x.size())], and the type of x. Its old values are
/// replaced.
struct SquareSums {
  static constexpr std::string_view name = "square_sums";
  static constexpr std::int64_t piece = 16384;
  static constexpr std::int64_t pieces(std::int64_t size) { return (size + piece - 1) / piece; }
  std::vector<Tensor> tensors, sums;
};

/// Computes the norm of all gradients and the factor that clips it to `largest`:
///   norm = sqrt(sum of `squares`);  factor = min(1, largest / norm), or 1 if largest = 0.
/// `squares` are the sums of SquareSums. Adam and Sgd multiply the gradients by factor. norm and
/// factor are tensors [1].
///
/// factor is also an input. It becomes 0 if norm or one of the losses is not finite, and remains 0
/// if it already was 0. From the first step with a non-finite norm or loss on, training therefore
/// changes no parameter, even before the host reads the norm or the losses.
struct GlobalNorm {
  static constexpr std::string_view name = "global_norm";
  Tensor squares;  // [pieces], the sums of squares from SquareSums
  double largest = 0;
  Tensor norm, factor;
  Tensor losses = {};  // [number of losses]; their element type is that of `norm`
};

/// Each parameter w has a gradient g', a weight decay and moments m and v. `rate` is the learning
/// rate, and `factor` clips the gradients (GlobalNorm). At step >= 1, let g = factor g' + decay w
/// if the weight decay is coupled, otherwise g = factor g'.
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///   m' = m / (1 - beta1^step);  v' = v / (1 - beta2^step);
///   w = w (1 - rate decay) - rate m' / (sqrt(v') + epsilon).
/// The term (1 - rate decay) is only used if the weight decay is decoupled (AdamW). With coupled
/// weight decay, this is Adam with an L2 penalty. If `factor` is 0, neither parameters nor moments
/// change, whatever the gradients are.
struct Adam {
  static constexpr std::string_view name = "adam";
  std::vector<Tensor> parameters, gradients, m, v;
  std::vector<double> decay;  // weight decay of each parameter
  Tensor now;                 // the three numbers of adam_now(), which depend on the step
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = true;
  Tensor factor = {};  // [1], multiplies all gradients; empty means 1
};

/// Returns the three numbers rate, rate / (1 - beta1^step) and 1 / (1 - beta2^step). They are
/// computed in f64, because 1 - beta^step is small in the first steps and would lose digits in f32.
std::array<double, 3> adam_now(double rate, std::int64_t step, double beta1 = 0.9,
                               double beta2 = 0.999);

/// Gradient descent with momentum. For each parameter w with gradient g' and velocity u,
///   g = factor g' + decay w;  u = momentum u + g;  w = w - rate u.
/// `rate` is the learning rate, `decay` is the weight decay, and `factor` clips the gradients
/// (GlobalNorm). If `factor` is 0, neither w nor u changes, whatever the gradients are.
struct Sgd {
  static constexpr std::string_view name = "sgd";
  std::vector<Tensor> parameters, gradients, velocities;
  std::vector<double> decay;  // weight decay of each parameter
  Tensor rate;                // [1], the learning rate
  double momentum = 0.9;
  Tensor factor = {};  // [1], multiplies all gradients; empty means 1
};

void check(const SquareSums& op);
void check(const GlobalNorm& op);
void check(const Adam& op);
void check(const Sgd& op);

}  // namespace longhand
