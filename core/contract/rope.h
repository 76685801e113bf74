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

/// The table for positions 0 .. longest-1 and the given frequencies (dims/2 of them), angles
/// computed in f64.
Tensor rope_table(Backend& backend, DType dtype, std::int64_t longest,
                  std::span<const double> frequencies);

void check(const Rope& op);

}  // namespace longhand
