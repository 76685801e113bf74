#pragma once

#include <string_view>

#include "core/contract/attention.h"

/// ChaCAL: attention that also attends to its own output at earlier positions. With P of Scores, P-
/// its strictly lower part and g = gamma in [0, 1], one for all heads ([1]) or one for each
/// ([q.heads]), of the master type:
///   Y = (1 - g) (I - g P-)^-1 P V
namespace longhand {

/// Row by row, with U_j = (1 - g) v_j + g y_j:
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i
/// g = 0 computes what Attention computes, bit for bit unless a backend adds up Attention's keys in
/// parts or, in other maths than exact, has other products for it. Saves y and log_sum, as
/// Attention does.
///
/// When the queries are fewer than the keys, the y_j of the positions before them are read from
/// `earlier`, which has y's heads and the keys' rows (a cache); rows of the new positions are not
/// read. Append puts new rows there. Scores here have no window.
struct Chacal {
  static constexpr std::string_view name = "chacal";
  Scores scores;
  Heads v;
  Tensor gamma;
  Heads earlier = {};
  Heads y;
  Tensor log_sum = {};
};

/// For queries and keys of one and the same segments. From the last row to the first
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j
/// and then, with U'_j = (1 - g) v_j + g y_j off the diagonal and (1 - g) v_j on it,
///   dv_j = (1 - g) A_j;  dgamma = sum_j (B_j . y_j - A_j . v_j)
///   dS_ij = P_ij (W_i . U'_j - W_i . y_i), since the row sum of P_ij dP_ij is W_i . y_i
/// and dq, dk and the gradients of the scores' tensors from dS as in AttentionBackward, where D_i
/// is W_i . y_i. With grouped keys W, A and B belong to the query heads.
struct ChacalBackward {
  static constexpr std::string_view name = "chacal_backward";
  Scores scores;
  Heads v, y, dy;
  Tensor gamma, log_sum;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
  Target dgamma = {};
};

void check(const Chacal& op);
void check(const ChacalBackward& op);

}  // namespace longhand
