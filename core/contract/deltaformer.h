#pragma once

#include <optional>
#include <string_view>

#include "core/contract/heads.h"
#include "core/math_mode.h"

/// DeltaFormer's memory: y = (I - diag(g) S)^-1 v. Each token adds to its value a multiple of the
/// values that earlier rows store under similar keys. S is the softmax of the scores over j < i
/// only, and g_i is a number for each row.
namespace longhand {

/// Computed row by row, with s_ij = scale q_i . k_j:
///   S_ij = exp(s_ij) / sum_(m<i) exp(s_im);  z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i
/// The gain g_i has any sign. If g_i < 0, as in DeltaFormer, a token subtracts z_i, the content of
/// earlier rows for its query; if g_i > 0, it adds z_i. The first row of a sequence sees no key,
/// and its z is 0.
///
/// Saves y, z in `read`, and the logarithm of S_ij's denominator in log_denominator (0 for a first
/// row). `read` and log_denominator may be empty if no backward pass follows.
///
/// If there are fewer queries than keys, the y_j of earlier positions are read from `earlier`, a
/// cache with y's heads and one row per key. The rows of the new positions are not read; Append
/// writes them.
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
