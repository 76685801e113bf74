#pragma once

#include "core/cpu/attention/chacal_gradients.h"
#include "core/cpu/attention/strict_softmax.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of DeltaFormer, whose forward pass is y_i = v_i + g_i z_i with z_i = sum_j
/// P_ij y_j. P are the weights of softmax attention over earlier keys only, and g_i is the gain of
/// row i. W_i is the gradient of y_i, including the part that comes through later rows. From the
/// last row to the first,
///   B_j = sum_(i>j) P_ij g_i W_i;  W_j = dy_j + B_j;  dv_j = W_j;  dg_j = W_j . z_j.
/// The gradients of the scores are those of softmax attention, dS_ij = P_ij (dP_ij - D_i), but with
/// dP_ij = g_i W_i . y_j and D_i = g_i W_i . z_i.
struct DeltaFormerGradients : SoftmaxGradients {
  using Formula = StrictSoftmax;
  static constexpr bool solves = true;
  static constexpr std::int64_t lone_query = 1;

  template <class T>
  static Source<T> values(const AttentionGradients<T>&, const Source<T>&, const Source<T>& y,
                          std::int64_t) {
    return y;
  }
  template <class T>
  static HeadRows<const T> mean(const AttentionGradients<T>& task) {
    return task.read;
  }
  template <class T>
  static void begin_head(const AttentionGradients<T>&, std::int64_t) {}

  /// Stores the first part of the gradient of each row's gain: dy_j . z_j, where z_j is the
  /// weighted mean of earlier outputs that row j has read (task.read).
  template <class T, class Product>
  static void start_solve(const GradientPanel<T, Product>& rows) {
    const AttentionGradients<T>& task = rows.task;
    if (!task.dgain) return;
    const auto z = rows.of_values(task.read);
    for (std::int64_t j = 0; j < rows.count; ++j) {
      float& to = task.dgain.row(rows.row + j)[rows.head];
      to = (task.add_dgain ? to : 0.0f) +
           dot(rows.gradient_row(j), z.row(j), task.shape.value_width);
    }
  }

  /// For `count` rows j, computes B_j = sum_(i>j) P_ij g_i W_i and g_j W_j = g_j (dy_j + B_j),
  /// where P are the weights and g are the gains. Also adds B_j . z_j, the second part of the
  /// gradient of g_j. z_j is row j of task.read, the weighted mean of earlier outputs.
  template <class T, class Product>
  [[gnu::always_inline]] static void solve(const GradientPanel<T, Product>& rows,
                                           const SolveGradientTile& tile, int count) {
    const AttentionGradients<T>& task = rows.task;
    const std::int64_t width = task.shape.value_width, row = rows.row + tile.first;
    float gains[tile_rows];
    for (int j = 0; j < count; ++j) gains[j] = task.gain.row(row + j)[rows.head];
    substitute(tile, count, width, [&](int j, Vec b, Vec dy) { return Vec(gains[j]) * (dy + b); });
    if (!task.dgain) return;
    const auto z = rows.of_values(task.read);
    for (int j = 0; j < count; ++j) {
      task.dgain.row(row + j)[rows.head] +=
          dot(tile.sums + j * tile.stride, z.row(tile.first + j), width);
    }
  }

  template <class T, class Product>
  static void correct_own(const GradientPanel<T, Product>&) {}

  /// Adds dv_j = dy_j + B_j of one head to all_value_sums. B_j, which is stored in value_sums, is
  /// the part of the gradient of y_j that comes from later rows.
  template <class T, class Product>
  static void end_head(const AttentionGradients<T>& task, const GradientSpace<Product>& space,
                       std::int64_t head, std::int64_t count) {
    const std::int64_t width = task.shape.value_width;
    const HeadRows<const T> rows{task.dy.at + head * width, task.dy.stride};
    const auto dy = source(rows, task.begin, count, width);
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t c = 0; c < width; c += lanes) {
        const std::int64_t at = r * space.value_stride + c;
        float* const all = space.all_value_sums + at;
        store(all, load(all) + (load(space.value_sums + at) + dy.at(r, c)));
      }
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
