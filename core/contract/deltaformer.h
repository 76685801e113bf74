#pragma once

#include <optional>
#include <string_view>

#include "core/contract/heads.h"
#include "core/math_mode.h"

/// DeltaFormer's memory: each token adds to its value a multiple of what earlier rows hold under
/// similar keys. With S the softmax of the scores over j < i only and a number g_i for each row:
///   y = (I - diag(g) S)^-1 v
namespace longhand {

/// Row by row, with s_ij = scale q_i . k_j:
///   S_ij = exp(s_ij) / sum_(m<i) exp(s_im);  z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
/// The gain g_i has any sign. With g_i < 0, as in DeltaFormer, a token subtracts what earlier rows
/// hold for it; with g_i > 0 it adds this. A first row has no key and z = 0.
///
/// Saves y, `read` = z, and log_denominator, the log of S_ij's denominator, 0 for a first row. read
/// and log_denominator may be empty if no backward follows.
///
/// If there are fewer queries than keys, the y_j of earlier positions are read from `earlier`,
/// which has y's heads and the keys' rows (a cache). Its rows of the new positions are not read;
/// Append writes them.
struct DeltaFormer {
  static constexpr std::string_view name = "deltaformer";
  Heads q, k, v;  // all with the same number of heads
  Segments queries, keys;
  double scale = 1;
  std::optional<Math> math = {};
  Tensor gain;  // [query tokens, q.heads], of the master type
  Heads earlier = {};
  Heads y;
  Tensor log_denominator = {};
  Heads read = {};
};

/// Requires queries and keys of the same segments. W = (I - diag(g) S)^-T dy, from the last row to
/// the first:
///   W_j = dy_j + sum_(i>j) S_ij g_i W_i
///   dv_j = W_j;  dg_i = W_i . z_i;  dS_ij = S_ij (g_i W_i . y_j - g_i W_i . z_i)
///   dq_i = scale sum_j dS_ij k_j;  dk_j = scale sum_i dS_ij q_i
struct DeltaFormerBackward {
  static constexpr std::string_view name = "deltaformer_backward";
  Heads q, k;
  Segments queries, keys;
  double scale = 1;
  std::optional<Math> math = {};
  Tensor gain, log_denominator;
  Heads y, read, dy;
  HeadsTarget dq = {}, dk = {}, dv = {};
  Target dgain = {};
};

void check(const DeltaFormer& op);
void check(const DeltaFormerBackward& op);

}  // namespace longhand
