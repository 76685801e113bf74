#pragma once

#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/attention/solve_tile.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// ChaCAL with the softmax weights P and the head's gamma g. A row reads (1 - g) v_i at its own key
/// i. At an earlier key j, it reads U_j = (1 - g) v_j + g y_j:
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i
struct ChacalRows : SoftmaxRows {
  static constexpr bool solves = true;

  /// Returns the vectors that later rows read at the keys j in place of the values v_j:
  /// (1 - gamma) v_j + gamma y_j. The outputs y_j at these keys are already computed.
  template <class T>
  static ChacalSource<T> values(const AttentionRows<T>& task, const Source<T>& v,
                                const Source<T>& y) {
    return {v, y, task.gamma};
  }

  /// For each of `count` rows i, completes the sum over the keys with unnormalized weights. Divides
  /// a copy of this sum by the softmax denominator, which gives the output y_i. Then replaces v_i
  /// by (1 - gamma) v_i + gamma y_i, which later rows read.
  template <class T>
  [[gnu::always_inline]] static void solve(const AttentionRows<T>& task, const SolveTile& tile,
                                           int count) {
    const Vec own(1.0f - task.gamma), past(task.gamma);
    float shares[tile_rows];
    for (int i = 0; i < count; ++i) shares[i] = 1.0f / tile.sums[i];
    substitute(tile, count, [&](int i, Vec& sum, Vec v) {
      const Vec first = own * v;
      sum = fma(Vec(tile.p[i * panel + i]), first, sum);
      return fma(past, sum * Vec(shares[i]), first);
    });
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
