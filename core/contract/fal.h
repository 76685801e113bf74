#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// First-After-Last heads find the last earlier key that agrees with the query, and read the value
/// after that key. Scores are products in f32 (f64 for f64 tensors) in every math mode, because the
/// sign of a score decides whether its key agrees.
namespace longhand {

/// For the query at position p of its sequence (core/contract/heads.h):
///   m = max { j < p : q_p . k_j > 0 }, or -1 if there is none (a score of 0 does not qualify)
///   y_p = (q_p . k_m) v_(m+1), or exactly 0 if m = -1
/// The value may be the query's own, because m + 1 <= p. The positions m are saved in `match`, i32
/// [query tokens, q.heads].
struct Fal {
  static constexpr std::string_view name = "fal";
  Heads q, k, v;
  Segments queries, keys;
  Heads y;
  Tensor match;
};

/// Only the chosen pairs (p, m) have gradients. For every query with m >= 0,
///   g = dy_p . v_(m+1);  dq_p = g k_m;  dk_m += g q_p;  dv_(m+1) += (q_p . k_m) dy_p
/// All other gradients are 0. The terms of a sum are added in the order of p and, with grouped
/// keys, in the order of the query heads.
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
