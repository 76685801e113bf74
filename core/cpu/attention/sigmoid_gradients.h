#pragma once

#include "core/cpu/attention/sigmoid_rows.h"
#include "core/cpu/attention/softmax_gradients.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of sigmoid attention: dS = P (1 - P) dP. Unlike in softmax, dS does not depend
/// on dy . y.
struct SigmoidGradients : SoftmaxGradients {
  using Formula = rules::Sigmoid;
  static constexpr bool normalized = false;

  template <class Product, bool shifted>
  static Vec weight(Vec x, Vec scale, Vec log_count, Vec shift, const float* key_shift) {
    const Vec s = score_of<Product, Formula, shifted>(x, scale, shift, key_shift);
    return Formula::weight(s - log_count);
  }
  static Vec score_gradient(Vec p, Vec dp, Vec) { return Formula::gradient(p, dp); }

  template <class T, class Product>
  static void start(const GradientPanel<T, Product>& rows) {
    log_counts(rows.task.shape.offset + rows.row, rows.task.shape, rows.space.logs);
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
