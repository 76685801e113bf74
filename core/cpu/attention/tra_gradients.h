#pragma once

#include "core/cpu/attention/leftward_gradients.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/rules/tra.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of threshold relative attention (core/rules/tra.h). The keys of a query are
/// processed from the last to the first. In the struct Walk, `known` is the number of positive
/// scores so far, and `pull` is the factor of this number in the logits. `sum` is the gradient of
/// `pull`, summed over the keys so far.
struct TraGradients : SoftmaxGradients {
  using Formula = rules::Tra;
  static constexpr bool bounds = true;
  static constexpr bool scale_late = true;  // the scale of the scores multiplies dq and dk, not dS

  template <class T, class Product>
  static void start(const GradientPanel<T, Product>& rows) {
    gather(rows.column(rows.task.log_sum), rows.row, rows.count, 0.0f, rows.space.log_sums);
    SoftmaxGradients::start(rows);
  }

  template <class T, class Product>
  static void start_walk(const GradientPanel<T, Product>& rows) {
    for (std::int64_t t = 0; t < panel; ++t) {
      rows.space.walked[0][t] = 0;
      rows.space.walked[1][t] = 0;
    }
  }
  template <class Product>
  static Vec gradient(Walk& walk, Vec s, Vec dp, Vec& p) {
    const Vec logit = Formula::logit(s, walk.pull, walk.known);
    p = exp2_or_zero(logit - walk.log);
    const Vec ds = Formula::gradient(logit, walk.log_sum, p, dp, walk.d);
    walk.sum = fma(ds, walk.known, walk.sum);
    return ds;
  }

  /// Computes space.bounds, from which spent() decides whether earlier keys can have a weight. The
  /// bound of a row is Tra::bound(highest, ...) - log_sum. Here `highest` is an upper bound of the
  /// row's scores with earlier keys, and log_sum is the logarithm of the row's softmax denominator.
  template <class T, class Product>
  static void bound(const GradientPanel<T, Product>& rows) {
    const AttentionGradients<T>& task = rows.task;
    const GradientSpace<Product>& space = rows.space;
    const auto tau = rows.column(task.tau), shift = rows.column(task.shift);
    const auto pull = rows.column(task.pull), log_sum = rows.column(task.log_sum);
    const float times = task.scale * log2_of_e;
    for (std::int64_t t = 0; t < panel; ++t) {
      space.bounds[t] = -__builtin_inff();
      space.pulls[t] = 0;
      if (t >= rows.count) continue;
      const std::int64_t row = rows.row + t;
      const float tau_t = tau ? *tau.row(row) : 1.0f;
      const float query = longest_row(rows.q(), row, row + 1, task.shape.width);
      const float factor = times * tau_t;
      float highest = query * *space.longest_key * (factor < 0 ? -factor : factor);
      if (shift) {
        const float own = *shift.row(task.shape.offset + row);
        highest += log2_of_e * (own - *space.least_shift);
      }
      space.pulls[t] = log2_of_e * *pull.row(row);
      space.bounds[t] =
          Formula::bound(highest, space.pulls[t], task.shape.keys) - log2_of_e * *log_sum.row(row);
    }
  }
  template <class Product>
  static bool spent(const GradientSpace<Product>& space) {
    for (int t = 0; t < panel; t += lanes) {
      const Vec most_far =
          fma(load(space.pulls + t), load(space.walked[0] + t) + Vec(1.0f), load(space.bounds + t));
      if (any(~(most_far < Vec(0.0f)))) return false;
    }
    return true;
  }

  /// Stores the gradient of `pull` (TraRule::count_bias), one number per query and head.
  template <class T, class Product>
  static void finish_walk(const GradientPanel<T, Product>& rows) {
    const AttentionGradients<T>& task = rows.task;
    for (std::int64_t t = 0; t < rows.count && task.dpull; ++t) {
      float& to = task.dpull.row(rows.row + t)[rows.head];
      to = (task.add_dpull ? to : 0.0f) + rows.space.walked[1][t];
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
