#pragma once

#include <string_view>

#include "core/contract/scores.h"

namespace longhand {

/// Attention that weighs more what it is known to need: the weights P_ij of the pairs in a list
/// grow by delta_h where they exceed the threshold C, and are not normalised again. With R_i the
/// keys of query i's pairs, and head h,
///   y_i += delta_h sum of v_j over the j in R_i that i sees and that have P_ij > C
/// where P_ij = exp(s_ij - log_denominator_i), and 1 where rounding makes that larger, is compared
/// as its logarithm: C = 0 takes all of R_i, C >= 1 nothing. Heads of delta_h = 0 cost nothing.
///
/// A pair is the row of a query among q's and the position of a key in the same segment. Pairs of
/// one query are side by side. Those of which i does not see j, because of the window or because
/// there is no such row, add nothing. There is no backward pass: this is done to a trained model.
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
