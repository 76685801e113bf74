#pragma once

#include "core/cpu/attention/chacal_rows.h"
#include "core/cpu/attention/strict_softmax.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// DeltaFormer. A row reads the outputs y_j at earlier keys j:
///   z_i = sum_(j<i) P_ij y_j;  y_i = v_i + g_i z_i.
/// P are the softmax weights over the earlier keys, and g_i is the gain of row i. The first row of
/// a sequence has no earlier key, so its z_i is 0.
struct DeltaFormerRows : SoftmaxRows {
  using Formula = StrictSoftmax;
  static constexpr bool solves = true, writes_rows = true;

  template <class T>
  static Source<T> values(const AttentionRows<T>&, const Source<T>&, const Source<T>& y) {
    return y;
  }

  /// Completes the weighted sums over earlier outputs for `count` rows. Replaces v of each row by
  /// its output, y = v + gain * sum / denominator.
  template <class T>
  [[gnu::always_inline]] static void solve(const AttentionRows<T>& task, const SolveTile& tile,
                                           int count) {
    float shares[tile_rows];
    for (int i = 0; i < count; ++i) {
      const float gain = *task.gain.row(tile.row + i);
      shares[i] = tile.sums[i] > 0 ? gain / tile.sums[i] : 0.0f;
    }
    substitute(tile, count, [&](int i, Vec& sum, Vec v) { return fma(sum, Vec(shares[i]), v); });
  }

  static float share(float sum) { return sum > 0 ? 1.0f / sum : 0.0f; }
  static Vec log_sum(Vec m, Vec sum) { return log_sum_or_zero(m, sum); }

  /// Writes the output y = v + gain z of a row, and also z if it is required. z = share * sum is
  /// the weighted mean of earlier outputs: `sum` is the sum of these outputs with unnormalized
  /// weights, and `share` is the reciprocal of the softmax denominator.
  template <class T>
  static void write_row(const AttentionRows<T>& task, std::int64_t row, const float* sum,
                        float share) {
    const std::int64_t width = task.shape.value_width;
    const T* const v = task.v.row(task.shape.offset + row);
    const Vec factor(share), gain(*task.gain.row(row));
    T* const y = task.y.row(row);
    T* const read = task.read ? task.read.row(row) : nullptr;
    for (std::int64_t c = 0; c < width; c += lanes) {
      const Vec z = load(sum + c) * factor;
      put(fma(gain, z, get(v, c, width)), y, c, width, {});
      if (read) put(z, read, c, width, {});
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
