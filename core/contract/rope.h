#pragma once

#include <span>
#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// Rotary positions. Heads h = 0 .. heads-1 of `width` columns each stand side by side in x from
/// `first_column` on; in each of them the first `dims` entries are rotated in pairs (u, v):
///   u' = u cos t - v sin t;  v' = u sin t + v cos t,   t = positions_i * frequency_p
/// Pair p is entries (p, p + dims/2), or (2p, 2p + 1) when interleaved. All other columns of x are
/// copied. table [longest, dims] holds cos t in its first half of columns and sin t in its second,
/// a row a position (rope_table makes it). inverse turns by -t, which is the backward pass.
/// y may be x's memory.
struct Rope {
  static constexpr std::string_view name = "rope";
  Tensor x, positions, table;
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false, inverse = false;
  Target y;
};

/// Rotations by angles that are numbers of the model. Heads h = 0 .. heads-1 of `width` columns
/// each stand side by side in x from `first_column` on; pair p of a head is entries (p, p +
/// width/2) and turns as in Rope by t = angles_{i, g width/2 + p}, where head h takes group g = h
/// mod the number of groups, so that queries and keys of one kind turn alike. All other columns of
/// x are copied. inverse turns by -t. y may be x's memory.
struct Rotate {
  static constexpr std::string_view name = "rotate";
  Tensor x, angles;  // angles: [rows, groups * width/2], of the master type
  std::int64_t first_column = 0, heads = 1, width = 0;
  bool inverse = false;
  Tensor y;
};

/// dangles_{i, g width/2 + p} = sum over the heads of group g of dv' u' - du' v', with (u', v') in
/// y and (du', dv') in dy. That of x is dy turned back: Rotate.
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
