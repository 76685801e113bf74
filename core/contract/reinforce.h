#pragma once

#include <string_view>

#include "core/contract/scores.h"

namespace longhand {

/// Adds to the output of trained attention: the weights of listed pairs of tokens grow by delta_h
/// if they exceed the threshold C. Rows are not normalized again. For head h, let R_i be the keys
/// of query i's pairs:
///   y_i += delta_h sum of v_j over the j in R_i that i sees and that have P_ij > C
/// P_ij = exp(s_ij - log_denominator_i), clamped to 1 because of rounding. The comparison uses
/// logarithms. All visible keys of R_i qualify if C = 0, and none if C >= 1. Heads with delta_h = 0
/// take no time.
///
/// A pair consists of the row of a query in q and the position of a key in the same segment. The
/// pairs of one query are adjacent. A pair is ignored if the row does not exist or the query does
/// not see the key. There is no backward pass, because the operation is only applied to trained
/// models.
struct Reinforce {
  static constexpr std::string_view name = "reinforce";
  Scores scores;
  Tensor log_denominator;  // of SoftmaxRule
  Heads v;
  Tensor pairs;    // i32 [n, 2]: row of the query, position of the key
  Tensor amounts;  // delta, [q.heads], of the master type
  double threshold = 0;
  Heads y;  // the output of Attention, which is added to
};

void check(const Reinforce& op);

}  // namespace longhand
