#pragma once

#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/solve_tile.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of ChaCAL. P are the weights of softmax attention, and g is the head's gamma.
/// These vectors are computed from the last row to the first:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j.
/// The gradients of the values and of gamma are
///   dv_j = (1 - g) A_j;  dg = sum_j (B_j . y_j - A_j . v_j).
/// The gradients of the scores are those of softmax attention with W_i in place of dy_i, and with
/// U_j = (1 - g) v_j + g y_j in place of v_j.
struct ChacalGradients : SoftmaxGradients {
  static constexpr bool solves = true;

  template <class T>
  static float gamma(const AttentionGradients<T>& task, std::int64_t head) {
    return task.gamma[head * task.gamma_step];
  }
  /// Returns the rows that take the place of v_j in the products: (1 - gamma) v_j + gamma y_j.
  template <class T>
  static ChacalSource<T> values(const AttentionGradients<T>& task, const Source<T>& v,
                                const Source<T>& y, std::int64_t head) {
    return {v, y, gamma(task, head)};
  }
  template <class T>
  static void begin_head(const AttentionGradients<T>& task, std::int64_t head) {
    task.dgamma[head] = 0;
  }
  template <class T, class Product>
  static void start_solve(const GradientPanel<T, Product>&) {}

  /// For `count` rows j, computes B_j = sum_(i>j) P_ij W_i and W_j = dy_j + gamma B_j, where P are
  /// the weights. Adds B_j . y_j to the gradient of gamma. Then replaces B_j by B_j + P_jj W_j.
  template <class T, class Product>
  [[gnu::always_inline]] static void solve(const GradientPanel<T, Product>& rows,
                                           const SolveGradientTile& tile, int count) {
    const AttentionGradients<T>& task = rows.task;
    const std::int64_t width = task.shape.value_width;
    const Vec g(gamma(task, rows.head));
    substitute(tile, count, width, [&](int, Vec b, Vec dy) { return fma(g, b, dy); });
    const auto y = rows.of_values(task.y);
    for (int j = 0; j < count; ++j) {
      float *const sums = tile.sums + j * tile.stride, *const w = tile.w + j * tile.stride;
      task.dgamma[rows.head] += dot(sums, y.row(tile.first + j), width);
      const Vec p(tile.p[j * panel + j]);
      for (std::int64_t c = 0; c < width; c += lanes) {
        store(sums + c, fma(p, load(w + c), load(sums + c)));
      }
    }
  }

  /// Corrects the diagonal of dP, which is in `ds`. The matrix product has computed W_i . ((1 -
  /// gamma) v_i + gamma y_i) there, where W takes the place of dy. But at its own key, row i reads
  /// only (1 - gamma) v_i, so gamma W_i . y_i is subtracted. space.sums contains W_i . y_i.
  template <class T, class Product>
  static void correct_own(const GradientPanel<T, Product>& rows) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      rows.space.ds[i * panel + i] -= gamma(rows.task, rows.head) * rows.space.sums[i];
    }
  }

  /// Adds (1 - gamma) A_j to dv_j and -A_j . v_j to the gradient of gamma, for one head. A_j, which
  /// is in value_sums, is sum_(i>=j) P_ij W_i, where P are the weights and W takes the place of dy.
  template <class T, class Product>
  static void end_head(const AttentionGradients<T>& task, const GradientSpace<Product>& space,
                       std::int64_t head, std::int64_t count) {
    const Vec own(1.0f - gamma(task, head));
    float* const all = space.all_value_sums;
    for (std::int64_t i = 0; i < count * space.value_stride; i += lanes) {
      store(all + i, fma(own, load(space.value_sums + i), load(all + i)));
    }
    for (std::int64_t r = 0; r < count; ++r) {
      task.dgamma[head] -= dot(space.value_sums + r * space.value_stride,
                               task.v.row(task.begin + r), task.shape.value_width);
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
