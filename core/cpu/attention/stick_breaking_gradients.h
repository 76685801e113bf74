#pragma once

#include "core/cpu/attention/leftward_gradients.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/rules/stick_breaking.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of stick-breaking. Each row distributes the weight 1 over its keys, from the
/// last to the first. In the struct Walk, `known` is the weight that is left. `sum` is the dot
/// product dy . y of the row minus the sum of P dP over the keys processed so far.
struct StickBreakingGradients : SoftmaxGradients {
  using Formula = rules::Stick;

  template <class T, class Product>
  static void start(const GradientPanel<T, Product>&) {}

  template <class T, class Product>
  static void start_walk(const GradientPanel<T, Product>& rows) {
    for (std::int64_t t = 0; t < panel; ++t) {
      rows.space.walked[0][t] = t < rows.count ? 1.0f : 0.0f;
      rows.space.walked[1][t] = rows.space.sums[t];
    }
  }
  template <class Product>
  static Vec gradient(Walk& walk, Vec s, Vec dp, Vec& p) {
    // `known` is the weight left for the remaining keys, and `sum` is the sum of P dP over these
    // keys. If `known` is negligible, so is the exact value of `sum`, and the computed value
    // contains only rounding errors.
    walk.sum = select(walk.known < Vec(Formula::spent), Vec(0.0f), walk.sum);
    walk.known = max(walk.known, Vec(least_left));
    const auto broken = Formula::broken(s);
    p = Product::rounded(Formula::weigh(broken, walk.known));
    return Formula::gradient(broken.taken, p, dp, walk.sum);
  }
  template <class Product>
  static bool spent(const GradientSpace<Product>& space) {
    for (int t = 0; t < panel; t += lanes) {
      if (any(load(space.walked[0] + t) >= Vec(Formula::spent))) return false;
    }
    return true;
  }
  template <class T, class Product>
  static void finish_walk(const GradientPanel<T, Product>&) {}
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
