#pragma once

#include <cstdint>
#include <string_view>

#include "core/contract/attention.h"

/// Rows that depend on the rows before them. With L a softmax below its diagonal, g a number and r
/// a right side,
///   y = (I - diag(g) L)^-1 r,  row by row  y_i = r_i + g_i sum_(j<i) L_ij y_j
namespace longhand {

/// The two kinds of chain.
///
/// attention: ChaCAL, attention that also attends to its own output at earlier positions. With P of
/// Scores, L = P-, its strictly lower part, and r = (1 - g) P v: Y = (1 - g) (I - g P-)^-1 P V. The
/// gain is g in [0, 1], one for all heads ([1]) or one for each ([q.heads]). No window.
///
/// values: r = v, and L = S is the softmax of the scores over j < i only. The scores have neither
/// window, tau, shift nor sink, and there are as many key heads as query heads. The gain has any
/// sign, one for each token and head ([query tokens, q.heads]). With g < 0, as in DeltaFormer, a
/// token subtracts what earlier rows hold for it; with g > 0 it adds this.
enum class ChainOf : std::uint8_t { attention, values };

/// Row by row, for attention with U_j = (1 - g) v_j + g y_j, and for values:
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i
///   z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
/// With g = 0, attention computes the same bits as Attention, unless a backend adds Attention's
/// keys in parts or, in math modes other than exact, uses other products for it.
///
/// Saves y and log_sum, as Attention does. For values, log_sum is 0 for a first row, which has no
/// key and z = 0, and z is saved as `read`, q.heads heads of v.width.
///
/// If there are fewer queries than keys, the y_j of earlier positions are read from `earlier`,
/// which has y's heads and the keys' rows (a cache). Its rows of the new positions are not read;
/// Append writes them.
struct Chain {
  static constexpr std::string_view name = "chain";
  Scores scores;
  Heads v;
  Tensor gain;  // of the master type
  Heads earlier = {};
  Heads y;
  Tensor log_sum = {};
  ChainOf of = ChainOf::attention;
  Heads read = {};
};

/// Requires queries and keys of the same segments. W = (I - diag(g) L)^-T dy, from the last row to
/// the first. For attention:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j
/// and then, with U'_j = (1 - g) v_j + g y_j off the diagonal and (1 - g) v_j on it,
///   dv_j = (1 - g) A_j;  dg = sum_j (B_j . y_j - A_j . v_j)
///   dS_ij = P_ij (W_i . U'_j - W_i . y_i), since the row sum of P_ij dP_ij is W_i . y_i
/// dq, dk and the gradients of the scores' tensors follow from dS as in AttentionBackward, with W_i
/// . y_i for D_i. With grouped keys W, A and B belong to the query heads. For values:
///   W_j = dy_j + sum_(i>j) S_ij g_i W_i
///   dv_j = W_j;  dg_i = W_i . z_i;  dS_ij = S_ij (g_i W_i . y_j - g_i W_i . z_i)
struct ChainBackward {
  static constexpr std::string_view name = "chain_backward";
  Scores scores;
  Heads v, y, dy;
  Tensor gain, log_sum;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
  Target dgain = {};
  ChainOf of = ChainOf::attention;
  Heads read = {};  // only for values
};

void check(const Chain& op);
void check(const ChainBackward& op);

}  // namespace longhand
