#pragma once

#include <string_view>

#include "core/contract/scores.h"

namespace longhand {

/// Changes the output y of trained attention: for listed pairs of a query and a key, the weight
/// grows by delta_h if it exceeds the threshold C. The rows are not normalized again. For head h,
/// let R_i be the listed keys of query i that the query sees:
///   y_i += delta_h sum of v_j over the j in R_i with P_ij > C
/// where P_ij = exp(s_ij - log_denominator_i). A P_ij above 1, which rounding can cause, counts as
/// 1. The comparison uses logarithms. If C = 0, all keys of R_i qualify; if C >= 1, none do. Heads
/// with delta_h = 0 are skipped.
///
/// A pair consists of the row of a query in q and the position of a key in the same sequence. All
/// pairs of one query are adjacent in the list. A pair is ignored if its row does not exist or its
/// query does not see the key. There is no backward pass, because the operation is only applied to
/// trained models.
struct Reinforce {
  static constexpr std::string_view name = "reinforce";
  Scores scores;
  Tensor log_denominator;  // saved by Attention, see SoftmaxRule
  Heads v;
  Tensor pairs;    // i32 [n, 2]: row of the query, position of the key
  Tensor amounts;  // delta, [q.heads], of the master type
  double threshold = 0;
  Heads y;  // the output of Attention, changed in place
};

void check(const Reinforce& op);

}  // namespace longhand
