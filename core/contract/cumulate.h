#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

/// Sums and counts of the tokens up to a token's position in its sequence. All tensors have the
/// master type.
namespace longhand {

/// y_ic is the sum of x_kc over the rows k <= i of i's segment. If `reverse` is set, it is the sum
/// over the rows k >= i. Rows outside all segments become 0. The backward pass is the same
/// operation with `reverse` inverted.
///
/// A sequence can be processed in pieces: its sums start at `before`, and the sums at its last row
/// are written to `after`, which may be the same tensor. This is not supported in reverse.
struct Cumulate {
  static constexpr std::string_view name = "cumulate";
  Tensor x;  // [rows, columns]
  Segments segments;
  bool reverse = false;
  Tensor before = {};  // [segments, columns]
  Target y;
  Tensor after = {};
};

/// y_ic = ln max(2, n_i). n_i is the number of keys up to query i's position
/// (core/contract/heads.h). If `whole` is set, n_i is the number of all keys of the segment. The
/// maximum with 2 is taken because ln 1 = 0.
struct LogCounts {
  static constexpr std::string_view name = "log_counts";
  Segments queries, keys;
  bool whole = false;
  Tensor y;  // [query tokens, columns]
};

void check(const Cumulate& op);
void check(const LogCounts& op);

}  // namespace longhand
