#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

/// Running sums over the tokens of each sequence, and running counts of these tokens. All tensors
/// are f32 or f64.
namespace longhand {

/// y_ic is the sum of x_kc over the rows k <= i of the segment that contains row i. If `reverse` is
/// set, the sum is over the rows k >= i of this segment. Rows of y outside all segments become 0.
/// The backward pass is the same operation with `reverse` inverted.
///
/// A sequence can be processed in pieces. The sums of a piece start at `before`, and the sums at
/// its last row are written to `after`. `before` and `after` may be the same tensor. They must be
/// empty if `reverse` is set.
struct Cumulate {
  static constexpr std::string_view name = "cumulate";
  Tensor x;  // [rows, columns]
  Segments segments;
  bool reverse = false;
  Tensor before = {};  // the initial sums, [segments, columns]
  Target y;
  Tensor after = {};
};

/// y_ic = ln max(2, n_i) in every column c. n_i is the number of keys up to the position of query
/// i. If `whole` is set, n_i is the number of all keys of the segment. n_i = 1 is replaced by 2,
/// because scores are multiplied by y, and ln 1 = 0 would turn every score into 0.
struct LogCounts {
  static constexpr std::string_view name = "log_counts";
  Segments queries, keys;
  bool whole = false;
  Tensor y;  // [query tokens, columns]
};

void check(const Cumulate& op);
void check(const LogCounts& op);

}  // namespace longhand
