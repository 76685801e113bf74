#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

namespace longhand {

/// Heads stored side by side in a [tokens, columns] tensor: entry c of head h of token i is data(i,
/// first_column + h width + c). Queries, keys and values of a fused projection are three Heads of
/// one tensor.
struct Heads {
  Tensor data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  std::int64_t end_column() const { return first_column + heads * width; }
};

/// The tensor that receives the gradients of heads. The gradients replace the current values, or
/// are added to them if `add` is true. Columns of the tensor outside the heads do not change. An
/// empty target means that the gradients are not required.
struct HeadsTarget {
  Heads heads = {};
  bool add = false;
  explicit operator bool() const { return static_cast<bool>(heads); }
};

/// The visibility shared by the three mechanisms. Segment s of `queries` and segment s of `keys`
/// are one sequence. Its queries are its last positions, so a query's position is
///   p = keys.length_s - queries.length_s + its place in queries s,
/// and the query sees the keys at positions 0 .. p of its own segment. In training both are the
/// same; in decoding the keys are in a cache and the queries are the new tokens. The segments of
/// queries cover all rows of q. In backward passes the segments of keys cover all rows of k too, so
/// each gradient row has one owner.
///
/// With grouped keys q has G times as many heads as k and v: query head h reads key head h / G.

/// Copies whole heads into a cache. The segments of x become the last positions of the segments of
/// y,
///   y(to.begin_s + to.length_s - from.length_s + t) = x(from.begin_s + t)
/// for every t < from.length_s and every head; all other entries of y stay. Types may differ.
struct Append {
  static constexpr std::string_view name = "append";
  Heads x;
  Segments from;
  Heads y;
  Segments to;
};

void check(const Append& op);

}  // namespace longhand
