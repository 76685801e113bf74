#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/segments.h"
#include "core/tensor.h"

/// Numbers that follow a token's place in its sequence. Of the master types.
namespace longhand {

/// y_ic = sum of x_kc over the rows k <= i of i's segment, or in reverse over its rows k >= i. Rows
/// of no segment are 0. Backward is the same in the other direction. Where sequences come in
/// pieces, sums begin with `before`'s and end in `after`, which may be `before`; not in reverse.
struct Cumulate {
  static constexpr std::string_view name = "cumulate";
  Tensor x;  // [rows, columns]
  Segments segments;
  bool reverse = false;
  Tensor before = {};  // [segments, columns]
  Target y;
  Tensor after = {};
};

/// y_ic = ln max(2, n_i): n_i is the number of keys up to query i's position
/// (core/contract/heads.h) or, of `whole` segments, that of all its segment's keys. Never 1, of
/// which the logarithm is 0.
struct LogCounts {
  static constexpr std::string_view name = "log_counts";
  Segments queries, keys;
  bool whole = false;
  Tensor y;  // [query tokens, columns]
};

void check(const Cumulate& op);
void check(const LogCounts& op);

}  // namespace longhand
