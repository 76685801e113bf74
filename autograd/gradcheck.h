#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/catalog/catalog.h"

namespace longhand {

struct GradcheckResult {
  double worst = 0;   // maximum error relative to the largest derivative of the input
  double bound = 0;   // maximum error of an entry as a fraction of its bound
  std::string where;  // case, input and entry of that maximum
  std::int64_t cases = 0;
  std::int64_t entries = 0;  // number of compared derivatives

  static constexpr double allowed_worst = 1e-6;
  bool passed() const { return worst < allowed_worst && bound <= 1; }
};

/// Compares every input gradient of an operation with difference quotients, in f64 on the reference
/// backend. With L = sum_k r_k y_k for random r, each entry x_i is moved by h and by 2h, and
///   D(h) = (L(x + h e_i) - L(x - h e_i)) / 2h,   R = (4 D(h) - D(2h)) / 3
/// is compared with g_i = dL/dx_i. The error of D(h) is a h^2 + b h^4 + ..., the error of R is -4 b
/// h^4. Two conditions must hold:
/// - relative to the largest derivative of the input (or to 1 if that is below 1e-6), the error is
/// below 1e-6;
/// - for each entry, |R - g_i| is below the possible error of the quotient itself,
///     1e-2 |R - D(h)| + 1e-3 (root mean square of R - D(h) over the input)   [truncation]
///     + 32 2^-53 / h sqrt(sum_k (r_k y_k)^2 + sum_j (x_j g_j)^2)             [rounding of L]
///   so that the error of a small derivative is not hidden by a large one.
GradcheckResult gradcheck(const catalog::Operation& operation, Backend& reference,
                          std::uint64_t seed = 1);

/// As above, for a user's function at the given arguments.
using Function = std::function<Var(std::span<const Var> arguments)>;
GradcheckResult gradcheck(const Function& f, const std::vector<catalog::HostTensor>& arguments,
                          Backend& reference, std::uint64_t seed = 1);

/// Compares the outputs and gradients of an operation on another backend with those of the
/// reference backend in f64, within the bounds of autograd/tolerance.h. `unit` is the rounding
/// error of the arithmetic. `worst` of the result is 0.
GradcheckResult gradcheck_on(const catalog::Operation& operation, Backend& backend,
                             DType activations, double unit, Backend& reference,
                             std::uint64_t seed = 1);

}  // namespace longhand
