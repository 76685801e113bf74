#pragma once

#include "core/cpu/attention/pack.h"

/// Solves the triangular system of a panel's own keys by substitution, tile by tile. Both functions
/// are inlined, so that a full tile is unrolled and its rows stay in registers.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// The rows of a tile in the forward pass. Their sums already include all keys before the tile. Row
/// i and key i are the same token.
struct SolveTile {
  const float* p;           // p[j * panel + i]: unnormalized weight of key j for row i
  const float* sums;        // the denominators of the rows
  float *outputs, *solved;  // sums over earlier keys; v of the rows, replaced by solved values
  std::int64_t stride, width, row;  // row: the tile's first query in the segment
};

/// Processes `count` rows from the first to the last. step(i, sum, v) receives v of row i and the
/// sum of this row over earlier keys. It may add the term of key i to the sum, and returns the
/// solved value of key i.
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

/// The rows of a tile in the backward pass. B_j, a sum over the rows after j, is defined in
/// chacal_gradients.h and deltaformer_gradients.h. It already includes all rows after the tile. Row
/// j and key j are the same token.
struct SolveGradientTile {
  const float* p;              // p[j * panel + i]: weight of key j for row i
  float* sums;                 // B of the rows
  float* w;                    // dy of the rows, replaced by W (DeltaFormer: gain times W)
  std::int64_t stride, first;  // first: the tile's first row in the panel
};

/// Processes `count` rows from the last to the first. step(j, b, dy) receives B_j and dy_j, and
/// returns W_j (DeltaFormer: g_j W_j), from which B of earlier rows is computed.
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
