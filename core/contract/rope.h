#pragma once

#include <span>
#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// Rotary positions. Heads h = 0 .. heads-1 of `width` columns each are side by side in x from
/// `first_column` on. In each head the first `dims` entries are rotated in pairs (u, v):
///   u' = u cos t - v sin t;  v' = u sin t + v cos t,   t = positions_i * frequency_p
/// Pair p is entries (p, p + dims/2), or (2p, 2p + 1) when interleaved. All other columns of x are
/// copied. table [longest, dims] holds cos t in the first half of its columns and sin t in the
/// second, one row per position (rope_table creates it). inverse rotates by -t, which is the
/// backward pass. y may be x's memory.
struct Rope {
  static constexpr std::string_view name = "rope";
  Tensor x, positions, table;
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false, inverse = false;
  Target y;
};

/// Rotations by angles that the model computes. Heads h = 0 .. heads-1 of `width` columns each are
/// side by side in x from `first_column` on. Pair p of a head is entries (p, p + width/2) and is
/// rotated as in Rope by t = angles_{i, g width/2 + p}. Head h uses group g = h mod the number of
/// groups, so that corresponding queries and keys rotate alike. All other columns of x are copied.
/// inverse rotates by -t. y may be x's memory.
struct Rotate {
  static constexpr std::string_view name = "rotate";
  Tensor x, angles;  // angles: [rows, groups * width/2], of the master type
  std::int64_t first_column = 0, heads = 1, width = 0;
  bool inverse = false;
  Tensor y;
};

/// Computes the gradient of the angles from y and dy:
///   dangles_{i, g width/2 + p} = sum over the heads of group g of dv' u' - du' v'
/// (u', v') are entries of y, and (du', dv') are entries of dy. The gradient of x is dy rotated
/// back by Rotate.
struct RotateBackward {
  static constexpr std::string_view name = "rotate_backward";
  Tensor y, dy;
  std::int64_t first_column = 0, heads = 1, width = 0;
  Target dangles;
};

/// The table for positions 0 .. longest-1 and the given frequencies (dims/2 of them), angles
/// computed in f64.
Tensor rope_table(Backend& backend, DType dtype, std::int64_t longest,
                  std::span<const double> frequencies);

void check(const Rope& op);
void check(const Rotate& op);
void check(const RotateBackward& op);

}  // namespace longhand
