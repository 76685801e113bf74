#pragma once

#include "core/cpu/attention/softmax_gradients.h"
#include "core/rules/entmax.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The backward pass of entmax: dS_ij = w_ij (dP_ij - D_i). w_ij is the square root of the weight
/// P_ij, and D_i is the mean of dP_ij over all keys j, weighted by w_ij. Blocks in which no key has
/// a weight are skipped.
struct EntmaxGradients : SoftmaxGradients {
  using Formula = rules::Entmax;
  static constexpr bool skips_blocks = true;

  /// Returns the square root of the weight P of one key, for a vector of queries. x contains the
  /// products of the queries with the key.
  template <class Product, bool shifted>
  static Vec weight(Vec x, Vec scale, Vec threshold, Vec shift, const float* key_shift) {
    const Vec s = score_of<Product, Formula, shifted>(x, scale, shift, key_shift);
    return Formula::weight(s, threshold);
  }
  static Vec probability(Vec w) { return w * w; }

  /// Reads the entmax threshold of each row, which the forward pass has saved in log_sum. A key
  /// has a weight only if half its score is above the threshold.
  template <class T, class Product>
  static void start(const GradientPanel<T, Product>& rows) {
    const auto threshold = rows.column(rows.task.log_sum);
    for (std::int64_t t = 0; t < panel; ++t) {
      rows.space.logs[t] = t < rows.count ? *threshold.row(rows.row + t) : 1e30f;
    }
  }

  /// True if any key of a block has a nonzero weight for any query of the panel.
  template <class Product, bool shifted>
  static bool has_weight(const Sight& there, const GradientSpace<Product>& space,
                         std::int64_t first) {
    for (std::int64_t t = 0; t < there.queries; t += lanes) {
      const std::int64_t unit = t / Sight::unit * Sight::unit;
      const Range rows = there.keys_of(unit, Sight::unit);
      const Vec scale = load(space.scale + t), threshold = load(space.logs + t);
      const Vec shift = load(space.shifts + t);
      for (int r = rows.begin; r < rows.end; ++r) {
        const Vec x = score_of<Product, Formula, shifted>(load(space.p + r * panel + t), scale,
                                                          shift, space.key_shifts + first + r);
        if (any((x > threshold) & there.sees(r, t))) return true;
      }
    }
    return false;
  }

  /// Computes D_i = dy_i . root_mean_i, where root_mean_i is the mean of the values, weighted by
  /// the square roots of the weights P. The terms are multiplied and summed exactly as in the
  /// product dP_ij = dy_i . v_j. If key j has all the weight of a row, root_mean_i is v_j. D_i then
  /// has the same bits as dP_ij, and dP_ij - D_i is exactly 0.
  template <class T, class Product>
  static void dots_like_products(const GradientPanel<T, Product>& rows) {
    const GradientSpace<Product>& space = rows.space;
    const std::int64_t width = rows.task.shape.value_width;
    for (int t = 0; t < panel; t += lanes) store(space.pulls + t, Vec(1.0f));
    pack_transposed<Product>(source(rows.of_values(rows.task.y), 0, rows.count, width), rows.count,
                             width, space.pulls, space.turned_means);
    for (std::int64_t t = 0; t < rows.count; t += lanes) {
      Vec d(0.0f);
      for (std::int64_t k = 0; k < space.value_depth; k += depth_piece) {
        Vec piece(0.0f);
        for (std::int64_t c = k; c < least(k + depth_piece, space.value_depth); ++c) {
          piece = Product::fold(load(space.turned_means + c * panel + t),
                                load(space.turned_gradients + c * panel + t), piece);
        }
        d = k > 0 ? d + piece : piece;
      }
      store(space.sums + t, d);
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
