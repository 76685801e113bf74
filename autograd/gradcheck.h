#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

namespace longhand {

struct GradcheckResult {
  // Largest relative error of a derivative. The error is divided by the largest derivative with
  // respect to the same input tensor.
  double worst = 0;
  // Largest quotient of a derivative's error and the error bound of this derivative.
  double bound = 0;
  std::string where;  // the case, input and entry that determined `bound`
  std::int64_t cases = 0;
  std::int64_t entries = 0;  // number of compared derivatives

  static constexpr double allowed_worst = 1e-6;
  bool passed() const { return worst < allowed_worst && bound <= 1; }
};

/// Compares every input gradient of an operation with difference quotients, in f64 on the reference
/// backend. The operation is reduced to the scalar L = sum_k r_k y_k, where y_k are the entries of
/// its outputs and r_k are random factors. Each input entry x_i is changed by a step h and by 2h.
/// The gradient g_i = dL/dx_i is then compared with the extrapolated quotient R:
///   D(h) = (L(x_i + h) - L(x_i - h)) / 2h;   R = (4 D(h) - D(2h)) / 3;
/// if the error of D(h) is a h^2 + b h^4 + ..., the error of R is -4 b h^4. Two conditions must
/// hold for each entry:
/// - |R - g_i| is below 1e-6 times the largest derivative of the input tensor. If this largest
///   derivative is below 1e-6, the limit is 1e-6.
/// - |R - g_i| is below a bound for the error of R, the sum of a bound for the truncation of R,
///     1e-2 |R - D(h)| + 1e-3 (root mean square of R - D(h) over the input tensor),
///   and a bound for the rounding of L,
///     32 2^-53 / h sqrt(sum_k (r_k y_k)^2 + sum_j (x_j g_j)^2).
///   With this condition, large derivatives do not hide the error of a small one.
GradcheckResult gradcheck(const catalog::Operation& operation, Backend& reference,
                          std::uint64_t seed = 1);

/// Compares the gradients of a function f at the given arguments with difference quotients, as
/// gradcheck() does for an operation.
using Function = std::function<Var(std::span<const Var> arguments)>;
GradcheckResult gradcheck(const Function& f, const std::vector<catalog::HostTensor>& arguments,
                          Backend& reference, std::uint64_t seed = 1);

/// Compares the outputs and gradients of an operation on another backend with those of the
/// reference backend in f64, within the bounds of autograd/tolerance.h. `unit` is the rounding
/// error of the arithmetic; see tolerance::unit(). `worst` of the result is not computed and is 0.
GradcheckResult gradcheck_on(const catalog::Operation& operation, Backend& backend,
                             DType activations, double unit, Backend& reference,
                             std::uint64_t seed = 1);

}  // namespace longhand
