#pragma once

#include "core/cpu/attention/pack.h"

/// The arguments of the solve() functions of rules. The triangular system of a panel's own keys is
/// solved tile by tile.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// A tile of rows. Their sums already include all keys except those of the tile itself. Row i and
/// key i are the same token.
struct SolveTile {
  const float* p;           // unnormalized weights: p[j panel + i] is that of key j for row i
  const float* sums;        // the denominators of the rows
  float *outputs, *solved;  // the rows' sums; their v, to be replaced by what later rows read
  std::int64_t stride, width, row;  // row: the first row among the task's queries
};

/// A tile of rows. Their B already include all later rows except those of the tile itself. Row j
/// and key j are the same token.
struct SolveGradientTile {
  const float* p;              // p[j panel + i]: weight of key j for row i
  float *sums, *w;             // B of the rows; their dy, to be replaced by W (DeltaFormer: g W)
  std::int64_t stride, first;  // first: the tile's first row in the panel
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
