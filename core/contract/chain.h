#pragma once

#include <cstdint>
#include <string_view>

#include "core/contract/attention.h"

/// Rows that are made of the rows before them: with L a softmax below its diagonal, g a number and
/// r a right side,
///   y = (I - diag(g) L)^-1 r,  row by row  y_i = r_i + g_i sum_(j<i) L_ij y_j
namespace longhand {

/// What a chain is made of.
///
/// attention: ChaCAL, attention that also attends to its own output at earlier positions. With P of
/// Scores, L = P-, its strictly lower part, and r = (1 - g) P v: Y = (1 - g) (I - g P-)^-1 P V. The
/// gain is g in [0, 1], one for all heads ([1]) or one for each ([q.heads]). No window.
///
/// values: r = v, and L = S is the softmax of the scores over j < i alone, which have neither
/// window, tau, shift nor sink, and as many key heads as query heads. The gain is of any sign, one
/// for each token and head ([query tokens, q.heads]). g < 0 takes away what earlier rows hold for a
/// token, as DeltaFormer does; g > 0 adds it.
enum class ChainOf : std::uint8_t { attention, values };

/// Row by row, of attention with U_j = (1 - g) v_j + g y_j, and of values:
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i
///   z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
/// g = 0 of attention computes what Attention computes, bit for bit unless a backend adds up
/// Attention's keys in parts or, in other maths than exact, has other products for it.
///
/// Saves y and log_sum, as Attention does, of values 0 for a first row, which has no key and z = 0;
/// and of values z as `read`, q.heads heads of v.width, beside log_sum.
///
/// When the queries are fewer than the keys, the y_j of the positions before them are read from
/// `earlier`, which has y's heads and the keys' rows (a cache); rows of the new positions are not
/// read. Append puts new rows there.
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

/// For queries and keys of one and the same segments. W = (I - diag(g) L)^-T dy, from the last row
/// to the first. Of attention
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j
/// and then, with U'_j = (1 - g) v_j + g y_j off the diagonal and (1 - g) v_j on it,
///   dv_j = (1 - g) A_j;  dg = sum_j (B_j . y_j - A_j . v_j)
///   dS_ij = P_ij (W_i . U'_j - W_i . y_i), since the row sum of P_ij dP_ij is W_i . y_i
/// and dq, dk and the gradients of the scores' tensors from dS as in AttentionBackward, where D_i
/// is W_i . y_i. With grouped keys W, A and B belong to the query heads. Of values
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
  Heads read = {};  // of values alone
};

void check(const Chain& op);
void check(const ChainBackward& op);

}  // namespace longhand
