#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

namespace longhand {

/// Heads where they lie, side by side in a [tokens, columns] tensor: entry c of head h of token i
/// is data(i, first_column + h width + c). Queries, keys and values of a fused projection are three
/// Heads of one tensor.
struct Heads {
  Tensor data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  std::int64_t end_column() const { return first_column + heads * width; }
};

/// Where gradients of heads go: assigned, or added to what is there. Columns of the tensor outside
/// the heads are left alone. Empty: not wanted.
struct HeadsTarget {
  Heads heads = {};
  bool add = false;
  explicit operator bool() const { return static_cast<bool>(heads); }
};

/// The visibility shared by the three mechanisms. Segment s of `queries` and of `keys` is one
/// sequence: its queries are the last of its positions, so that a query's position is
///   p = keys.length_s - queries.length_s + its place in queries s,
/// and it sees the keys at positions 0 .. p of its own segment. In training both are the same; in
/// decoding the keys lie in a cache and the queries are the new tokens. Queries tile q's rows. In
/// backward passes keys tile k's rows too, so each gradient row has one owner.
///
/// With grouped keys q has G times as many heads as k and v: query head h reads key head h / G.

/// Copies whole heads into a cache: with x's segments the last positions of y's,
///   y(to.begin_s + to.length_s - from.length_s + t) = x(from.begin_s + t)
/// for every t < from.length_s and every head; all else of y stays. Types may differ.
struct Append {
  static constexpr std::string_view name = "append";
  Heads x;
  Segments from;
  Heads y;
  Segments to;
};

void check(const Append& op);

}  // namespace longhand
