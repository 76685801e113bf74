#pragma once

#include "core/cpu/attention/pack.h"

/// In ChaCAL and DeltaFormer, the output of a row depends on the outputs of earlier rows. Within a
/// panel of 64 rows, this is a triangular system. The two functions of this file solve it by
/// substitution, one tile of 8 rows at a time. Both are inlined, so that the loops over a full tile
/// are unrolled and its rows stay in registers.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// A tile of rows in the forward pass of ChaCAL or DeltaFormer. Row i and key i are the same token.
/// At the start, `outputs` already includes the terms of all keys before the tile.
struct SolveTile {
  const float* p;     // p[j * panel + i]: unnormalized weight of key j for row i
  const float* sums;  // softmax denominator of each row
  // solved: at first, the value v of each row. Once the output y of a row is known, v is replaced
  // by the vector u that later rows read at this key. u is (1 - gamma) v + gamma y for ChaCAL, with
  // its parameter gamma, and y for DeltaFormer. outputs: for each row, the sum over earlier keys of
  // the weight times u.
  float *outputs, *solved;
  std::int64_t stride, width, row;  // row: index of the tile's first query in the segment
};

/// Processes `count` rows from the first to the last. Let u_j be what later rows read at key j:
/// (1 - gamma) v_j + gamma y_j for ChaCAL, y_j for DeltaFormer. step(i, sum, v) receives v_i and
/// `sum`, the sum of P_ij u_j over all keys j < i with unnormalized weights P. It returns u_i. For
/// ChaCAL, it also adds the term of key i to `sum`. `sum` is then stored in tile.outputs.
template <class Step>
[[gnu::always_inline]] inline void substitute(const SolveTile& tile, int count, const Step& step) {
  for (std::int64_t c = 0; c < tile.width; c += lanes) {
    Vec read[tile_rows];
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      float* const output = tile.outputs + i * tile.stride + c;
      float* const value = tile.solved + i * tile.stride + c;
      Vec sum = load(output);
#pragma GCC unroll 8
      for (int j = 0; j < i; ++j) sum = fma(Vec(tile.p[j * panel + i]), read[j], sum);
      read[i] = step(i, sum, load(value));
      store(output, sum);
      store(value, read[i]);
    }
  }
}

/// A tile of rows in the backward pass of ChaCAL or DeltaFormer. Row j and key j are the same
/// token. For each row, w_j is computed from dy_j and b_j = sum_(i>j) P_ij w_i. For ChaCAL, w_j is
/// dy_j + gamma b_j. For DeltaFormer, it is gain_j (dy_j + b_j). At the start, b_j already includes
/// the terms of all rows i after the tile.
struct SolveGradientTile {
  const float* p;              // p[j * panel + i]: weight of key j for row i
  float* sums;                 // for each row j: the sum over later rows i of P_ij times row i of w
  float* w;                    // dy of each row, which is replaced by the row of the solution
  std::int64_t stride, first;  // first: index of the tile's first row in the panel
};

/// Processes `count` rows from the last to the first. step(j, b, dy) receives dy_j and the sum
/// b = sum_(i>j) P_ij w_i over later rows i, and returns w_j. For ChaCAL, w_j is dy_j + gamma b.
/// For DeltaFormer, it is gain_j (dy_j + b).
template <class Step>
[[gnu::always_inline]] inline void substitute(const SolveGradientTile& tile, int count,
                                              std::int64_t width, const Step& step) {
  for (std::int64_t c = 0; c < width; c += lanes) {
    Vec read[tile_rows];
#pragma GCC unroll 8
    for (int j = count - 1; j >= 0; --j) {
      float* const sum = tile.sums + j * tile.stride + c;
      float* const w = tile.w + j * tile.stride + c;
      Vec b = load(sum);
#pragma GCC unroll 8
      for (int i = count - 1; i > j; --i) b = fma(Vec(tile.p[j * panel + i]), read[i], b);
      read[j] = step(j, b, load(w));
      store(w, read[j]);
      store(sum, b);
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
