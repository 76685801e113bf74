#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// First-After-Last heads: find the last earlier key that agrees with the query and read the value
/// after it. Whatever the backend's Math, scores are computed with f32 products (f64 for f64),
/// because their sign decides the match.
namespace longhand {

/// For the query at position p of its segment (core/contract/heads.h):
///   m = max { j < p : q_p . k_j > 0 }, or -1 where there is none (a score of 0 does not qualify)
///   y_p = (q_p . k_m) v_(m+1), exactly 0 where m = -1
/// m + 1 <= p: the query's own value may be read. Saves match = m, i32 [query tokens, q.heads],
/// counted in the segment.
struct Fal {
  static constexpr std::string_view name = "fal";
  Heads q, k, v;
  Segments queries, keys;
  Heads y;
  Tensor match;
};

/// Gradients pass through the chosen pairs only. For every query with m >= 0, g = dy_p . v_(m+1):
///   dq_p = g k_m;  dk_m += g q_p;  dv_(m+1) += (q_p . k_m) dy_p
/// and zeros elsewhere. Sums run over p in order, and for grouped keys over the heads in order.
struct FalBackward {
  static constexpr std::string_view name = "fal_backward";
  Heads q, k, v;
  Segments queries, keys;
  Tensor match;
  Heads dy;
  HeadsTarget dq = {}, dk = {}, dv = {};
};

void check(const Fal& op);
void check(const FalBackward& op);

}  // namespace longhand
