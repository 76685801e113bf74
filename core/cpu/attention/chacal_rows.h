#pragma once

#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/attention/solve_tile.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// ChaCAL: later rows read U_j = (1 - g) v_j + g y_j at key j, and a row reads (1 - g) v_i at its
/// own key.
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i
struct ChacalRows : SoftmaxRows {
  static constexpr bool solves = true;

  /// The values U of keys whose outputs y are known.
  template <class T>
  static ChacalSource<T> values(const AttentionRows<T>& task, const Source<T>& v,
                                const Source<T>& y) {
    return {v, y, task.gamma};
  }

  /// Solves `count` rows. It is inlined, so that the tile is unrolled and its U stay in registers,
  /// because each row depends on the row before it.
  template <class T>
  [[gnu::always_inline]] static void solve(const AttentionRows<T>& task, const SolveTile& tile,
                                           int count) {
    const Vec own(1.0f - task.gamma), past(task.gamma);
    float shares[tile_rows];
    for (int i = 0; i < count; ++i) shares[i] = 1.0f / tile.sums[i];
    for (std::int64_t c = 0; c < tile.width; c += lanes) {
      Vec u[tile_rows];
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const float* const p = tile.p + i;
        float* const output = tile.outputs + i * tile.stride + c;
        float* const value = tile.solved + i * tile.stride + c;
        Vec sum = load(output);
#pragma GCC unroll 8
        for (int j = 0; j < i; ++j) sum = fma(Vec(p[j * panel]), u[j], sum);
        const Vec first = own * load(value);
        sum = fma(Vec(p[i * panel]), first, sum);
        store(output, sum);
        u[i] = fma(past, sum * Vec(shares[i]), first);
        store(value, u[i]);
      }
    }
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
