#pragma once

#include <string_view>

#include "core/contract/scores.h"

namespace longhand {

/// Increases attention weights of a trained model by changing y, the output of Attention. In head
/// h, the weight of each listed pair of a query and a key grows by delta_h (`amounts`) if the
/// weight exceeds C (`threshold`). The weights of a row are not normalized again. Let R_i be the
/// listed keys of query i that the query sees:
///   y_i += delta_h sum of v_j over the j in R_i with P_ij > C.
/// The weight of key j is P_ij = exp(s_ij - log_denominator_i), where s_ij is its score. A P_ij
/// above 1, which rounding can cause, counts as 1. P_ij and C are compared by their logarithms. If
/// C = 0, the output changes for all keys of R_i. If C >= 1, it changes for none. Heads with
/// delta_h = 0 are skipped.
///
/// A pair consists of the row of a query in q and the position of a key in the same sequence. All
/// pairs of one query are adjacent in the list. A pair is ignored if its row does not exist or its
/// query does not see the key. There is no backward pass, because the operation is meant for
/// trained models.
struct Reinforce {
  static constexpr std::string_view name = "reinforce";
  Scores scores;
  Tensor log_denominator;  // log of the softmax denominator of each row, saved by Attention
  Heads v;
  Tensor pairs;  // i32 [pairs, 2]: row of the query in q, position of the key in its sequence
  // [q.heads], f64 if q is f64, otherwise f32. For each head, the number that is added to the
  // weights of the listed pairs; 0 leaves the head unchanged.
  Tensor amounts;
  double threshold = 0;
  Heads y;  // the output of Attention, changed in place
};

void check(const Reinforce& op);

}  // namespace longhand
