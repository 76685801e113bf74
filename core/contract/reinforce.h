#pragma once

#include <string_view>

#include "core/contract/scores.h"

namespace longhand {

/// Changes the output y of trained attention: for listed pairs of a query and a key, the weight
/// grows by delta_h (`amounts` of head h) if it exceeds C (`threshold`). The weights of a row are
/// not normalized again. Let R_i be the listed keys of query i that the query sees:
///   y_i += delta_h sum of v_j over the j in R_i with P_ij > C
/// P_ij = exp(s_ij - log_denominator_i) is the weight of key j, and s_ij is its score. A P_ij above
/// 1, which rounding can cause, counts as 1. The comparison uses logarithms. If C = 0, all keys of
/// R_i qualify; if C >= 1, none do. Heads with delta_h = 0 are skipped.
///
/// A pair consists of the row of a query in q and the position of a key in the same sequence. All
/// pairs of one query are adjacent in the list. A pair is ignored if its row does not exist or its
/// query does not see the key. There is no backward pass, because the operation is only applied to
/// trained models.
struct Reinforce {
  static constexpr std::string_view name = "reinforce";
  Scores scores;
  Tensor log_denominator;  // log of the softmax denominator of each row, saved by Attention
  Heads v;
  Tensor pairs;    // i32 [pairs, 2]: row of the query in q, position of the key in its sequence
  Tensor amounts;  // [q.heads], master type: delta_h, which is added to the weights of head h
  double threshold = 0;
  Heads y;  // the output of Attention, changed in place
};

void check(const Reinforce& op);

}  // namespace longhand
