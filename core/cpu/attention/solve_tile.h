#pragma once

#include "core/cpu/attention/pack.h"

/// The triangular solve of a panel's own keys, tile by tile, as rules that solve see it.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// A tile of rows whose outputs lack only the sums over the tile's own keys. Row i and key i are
/// the same token.
struct SolveTile {
  const float* p;           // unnormalized weights: p[j panel + i] is that of key j for row i
  const float* sums;        // the denominators of the rows
  float *outputs, *solved;  // the rows' sums; their v, which become what later rows read
  std::int64_t stride, width, row;  // row: the first row among the task's queries
};

/// A tile of rows whose B lacks only the sums over the tile's own later rows. Row j and key j are
/// the same token.
struct SolveGradientTile {
  const float* p;              // p[j panel + i]: weight of key j for row i
  float *sums, *w;             // B of the rows; their dy, which becomes W, or g W for DeltaFormer
  std::int64_t stride, first;  // first: the tile's first row in the panel
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
