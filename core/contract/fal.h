#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// First-After-Last heads find the last earlier key whose product with the query is positive, and
/// read the value of the token after this key. The products of queries and keys are computed in f32
/// (f64 for f64 tensors) in every math mode, because their sign decides which key is found.
namespace longhand {

/// For the query at position p of its sequence:
///   m = max { j < p : q_p . k_j > 0 }, or -1 if there is no such j (0 is not positive);
///   y_p = (q_p . k_m) v_(m+1), or exactly 0 if m = -1.
/// The value v_(m+1) may be at the query's own position, because m + 1 <= p. The positions m are
/// saved in `match`, i32 [query tokens, q.heads].
struct Fal {
  static constexpr std::string_view name = "fal";
  Heads q, k, v;
  Segments queries, keys;
  Heads y;
  Tensor match;
};

/// The gradients come only from queries with a matching key. For every query at position p whose
/// matching key is at position m >= 0 (`match`),
///   g = dy_p . v_(m+1);  dq_p = g k_m;  dk_m += g q_p;  dv_(m+1) += (q_p . k_m) dy_p.
/// All other gradients are 0. If several query heads read one key head, the terms of dk and dv are
/// added in the order of the query heads, and for each head in the order of p.
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
