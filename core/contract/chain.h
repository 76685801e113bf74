#pragma once

#include <string_view>

#include "core/contract/attention.h"

/// Rows that are made of the rows before them. With S_ij the softmax of the scores over j < i alone
/// and g a number for each token and head, of any sign:
///   y = (I - diag(g) S)^-1 v
/// g < 0 takes away what earlier rows hold for a token, as DeltaFormer does; g > 0 adds it.
namespace longhand {

/// Row by row:
///   z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
/// A sequence's first row has no key, z = 0. Scores have neither window, tau, shift nor sink, and
/// as many key heads as query heads. Saves z as `read`, q.heads heads of v.width, and log_sum as
/// Attention does, 0 for a first row; both or neither.
///
/// When the queries are fewer than the keys, the y_j of the positions before them are read from
/// `earlier`, as in Chacal.
struct Chain {
  static constexpr std::string_view name = "chain";
  Scores scores;
  Heads v;
  Tensor gain;  // [query tokens, q.heads], of the master type
  Heads earlier = {};
  Heads y;
  Heads read = {};
  Tensor log_sum = {};
};

/// For queries and keys of one and the same segments. From the last row to the first
///   W_j = dy_j + sum_(i>j) S_ij g_i W_i
/// and then
///   dv_j = W_j;  dg_i = W_i . z_i;  dS_ij = g_i W_i . y_j, of which the row sum of S_ij dS_ij is
///   g_i W_i . z_i;  ds_ij = S_ij g_i (W_i . y_j - W_i . z_i)
///   dq_i = scale sum_j ds_ij k_j;  dk_j = scale sum_i ds_ij q_i
struct ChainBackward {
  static constexpr std::string_view name = "chain_backward";
  Scores scores;
  Heads y, read, dy;
  Tensor gain, log_sum;
  HeadsTarget dq = {}, dk = {}, dv = {};
  Target dgain = {};
};

void check(const Chain& op);
void check(const ChainBackward& op);

}  // namespace longhand
