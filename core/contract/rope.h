#pragma once

#include <span>
#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// Rotary positions (RoPE). The heads 0 .. heads-1 of x have `width` columns each and begin at
/// `first_column`. In each head the first `dims` entries are rotated in pairs. Pair p has the
/// frequency f_p. In row i, it is rotated by the angle t = positions_i f_p. The pair (u, v) becomes
///   u' = u cos t - v sin t;  v' = u sin t + v cos t.
/// Pair p consists of the entries p and p + dims/2 or, if `interleaved` is set, 2p and 2p + 1. All
/// other columns of x are copied. rope_table() creates the table [longest, dims], which has one row
/// per position: cos t in the first half of its columns and sin t in the second. If `inverse` is
/// set, the rotation is by -t, as the backward pass requires. y may share the memory of x.
struct Rope {
  static constexpr std::string_view name = "rope";
  Tensor x, positions, table;
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false, inverse = false;
  Target y;
};

/// Rotates heads by angles that the model computes. The heads 0 .. heads-1 of x have `width`
/// columns each and begin at `first_column`. Pair p of a head consists of the entries p and
/// p + width/2. With G groups of heads, head h belongs to group g = h mod G. If x contains G query
/// heads and then G key heads, each query head thus has the same angles as its key head. In row i
/// of x, the pair is rotated as in Rope, by the angle in row i and column g width/2 + p of
/// `angles`. All other columns of x are copied. If `inverse` is set, the rotation is by minus this
/// angle. y may share the memory of x.
struct Rotate {
  static constexpr std::string_view name = "rotate";
  Tensor x, angles;  // angles: [rows, groups * width/2], f64 if x is f64, otherwise f32
  std::int64_t first_column = 0, heads = 1, width = 0;
  bool inverse = false;
  Tensor y;
};

/// Computes the gradient of the angles of Rotate from its output y and from dy. For row i, pair p
/// of a head, and group g of heads,
///   dangles_{i, g width/2 + p} = sum over the heads of group g of (dv' u' - du' v'),
/// where (u', v') is pair p of a head in y, and (du', dv') is the same pair in dy. The gradient of
/// x is not computed here: it is Rotate of dy with `inverse`.
struct RotateBackward {
  static constexpr std::string_view name = "rotate_backward";
  Tensor y, dy;
  std::int64_t first_column = 0, heads = 1, width = 0;
  Target dangles;
};

/// Returns the table of cosines and sines that Rope reads, for the positions 0 .. longest-1 and one
/// frequency per pair of entries. Angles are computed in f64.
Tensor rope_table(Backend& backend, DType dtype, std::int64_t longest,
                  std::span<const double> frequencies);

void check(const Rope& op);
void check(const Rotate& op);
void check(const RotateBackward& op);

}  // namespace longhand
