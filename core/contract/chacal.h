#pragma once

#include <string_view>

#include "core/contract/scores.h"

/// ChaCAL: attention that also attends to its own output at earlier positions,
///   Y = (1 - g) (I - g P-)^-1 P V
/// where P are the weights of softmax attention, P- is the part of P below the diagonal, and V are
/// the values. g is the head's gamma, a number in [0, 1].
namespace longhand {

/// The rows are computed in order. With the softmax weights P, the head's gamma g, and
/// U_j = (1 - g) v_j + g y_j,
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i.
/// If g = 0, y is the output of Attention up to rounding. The rounding may differ for two reasons.
/// First, Attention may divide the keys into parts, sum over each part separately and add these
/// sums. Second, in math modes other than exact, a backend may compute the products of the two
/// operations with different instructions.
///
/// Saves y and the logarithm of each row's softmax denominator (log_denominator). The scores must
/// not have a window.
///
/// If there are fewer queries than keys, y has no rows for the positions before the first query.
/// The outputs at these positions are read from `earlier`, a cache with y's heads and one row per
/// key. The rows of `earlier` at the positions of the queries are not read. The caller fills them
/// with the operation Append.
struct Chacal {
  static constexpr std::string_view name = "chacal";
  Scores scores;
  Tensor sink = {};  // [q.heads]: exp(sink) is added to the softmax denominator; empty: no sink
  Heads v;
  Tensor gamma;  // [1] for all heads, or [q.heads]; f64 if q is f64, otherwise f32
  Heads earlier = {};
  Heads y;
  Tensor log_denominator = {};
};

/// The backward pass of Chacal. It requires the same segments for queries and keys. P are the
/// softmax weights, P- is the part of P below the diagonal, and g is the head's gamma.
/// W = (I - g P-)^-T dy is computed from the last row to the first:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j.
/// The gradients of the values, gamma and the scores are
///   dv_j = (1 - g) A_j;  dgamma = sum_j (B_j . y_j - A_j . v_j);
///   dS_ij = P_ij (dP_ij - W_i . y_i), where dP_ij = W_i . U'_j.
/// U'_j is (1 - g) v_j + g y_j for j < i, and (1 - g) v_j for j = i. All other gradients follow
/// from dS as in softmax attention. The gradient of the sink uses W_i . y_i in place of dy_i . y_i.
/// W, A and B are computed for each query head, even if several query heads read one key head.
struct ChacalBackward {
  static constexpr std::string_view name = "chacal_backward";
  Scores scores;
  Tensor sink = {};
  Heads v, y, dy;
  Tensor gamma, log_denominator;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
  Target dsink = {}, dgamma = {};
};

void check(const Chacal& op);
void check(const ChacalBackward& op);

}  // namespace longhand
