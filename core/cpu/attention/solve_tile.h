#pragma once

#include "core/cpu/attention/pack.h"

/// The triangular system of a panel's own keys is solved tile by tile, by substitution. Both
/// functions are inlined, so that a full tile is unrolled and its rows stay in registers.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// A tile of rows. Their sums already include all keys except those of the tile itself. Row i and
/// key i are the same token.
struct SolveTile {
  const float* p;           // unnormalized weights: p[j panel + i] is that of key j for row i
  const float* sums;        // the denominators of the rows
  float *outputs, *solved;  // the rows' sums; their v, to be replaced by what later rows read
  std::int64_t stride, width, row;  // row: the first row among the task's queries
};

/// Substitution from the first of `count` rows to the last. step(i, sum, v) receives the sum of row
/// i over earlier rows and the row's v. It may complete the sum, and returns what later rows read.
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

/// A tile of rows. Their B already include all later rows except those of the tile itself. Row j
/// and key j are the same token.
struct SolveGradientTile {
  const float* p;              // p[j panel + i]: weight of key j for row i
  float *sums, *w;             // B of the rows; their dy, to be replaced by W (DeltaFormer: g W)
  std::int64_t stride, first;  // first: the tile's first row in the panel
};

/// Substitution from the last of `count` rows to the first. step(j, b, dy) receives B of row j and
/// the row's dy, and returns what earlier rows read.
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
