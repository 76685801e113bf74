#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

namespace longhand {

/// Heads that are stored side by side in a [tokens, columns] tensor: entry c of head h of token i
/// is data(i, first_column + h width + c). The queries, keys and values of a fused projection are
/// three Heads of one tensor.
struct Heads {
  Tensor data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  std::int64_t end_column() const { return first_column + heads * width; }
};

/// The tensor that receives the gradients of heads. The gradients replace the tensor's values or,
/// if `add` is set, are added to them. Columns outside the heads do not change. An empty target
/// means that the gradients are not required.
struct HeadsTarget {
  Heads heads = {};
  bool add = false;
  explicit operator bool() const { return static_cast<bool>(heads); }
};

/// The following holds for all operations with queries and keys. Segment s of `queries` and segment
/// s of `keys` belong to one sequence. The queries are the last tokens of the sequence, so the
/// position of a query is
///   p = keys.length_s - queries.length_s + the query's index within segment s of queries,
/// and the query sees the keys at the positions 0 .. p of its own sequence. length_s is the length
/// of segment s. In training, queries and keys have the same segments. In decoding, the keys are in
/// a cache, and the queries are the new tokens. Without a causal mask (Scores::causal is false), a
/// query sees every key of its segment. A segment may then have fewer keys than queries, but if it
/// has queries, it must have at least one key. The segments of queries cover all rows of q. In
/// backward passes the segments of keys also cover all rows of k, so each row of a gradient belongs
/// to exactly one segment.
///
/// With grouped keys, q has G times as many heads as k and v. Query head h reads the key head h /
/// G.

/// Copies heads x into a cache y. `from` contains the segments of x, and `to` those of y. The rows
/// of each segment of x are written to the last positions of the same segment of y:
///   y(to.begin_s + to.length_s - from.length_s + t) = x(from.begin_s + t)
/// for every segment s, every t < from.length_s and every head. begin_s and length_s are the first
/// row and the length of segment s. All other entries of y are unchanged. x and y may have
/// different types.
struct Append {
  static constexpr std::string_view name = "append";
  Heads x;
  Segments from;
  Heads y;
  Segments to;
};

void check(const Append& op);

}  // namespace longhand
