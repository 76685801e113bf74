#pragma once

#include <optional>
#include <string_view>

#include "core/contract/heads.h"
#include "core/math_mode.h"

/// DeltaFormer: y = (I - diag(g) S)^-1 v. The output of token i is its value plus g_i times a
/// weighted mean of the earlier outputs. The weights S_ij are the softmax of the scores over the
/// keys j < i only. g_i is one number per token and head.
namespace longhand {

/// The rows are computed in order, with the scores s_ij = scale q_i . k_j and the gains g_i:
///   S_ij = exp(s_ij) / sum_(m<i) exp(s_im);  z_i = sum_(j<i) S_ij y_j;  y_i = v_i + g_i z_i.
/// The gains may have any sign. Those of the published DeltaFormer are negative, so that a part of
/// z_i is subtracted from the value.
/// The first row of a sequence sees no key, and its z is 0.
///
/// Saves y, z (in `read`) and the logarithm of the denominator of S_ij (in log_denominator, 0 for
/// the first row of a sequence). `read` and log_denominator may be empty if no backward pass
/// follows.
///
/// If there are fewer queries than keys, y has no rows for the positions before the first query.
/// The outputs at these positions are read from `earlier`, a cache with y's heads and one row per
/// key. The rows of `earlier` at the positions of the queries are not read. The caller fills them
/// with the operation Append.
struct DeltaFormer {
  static constexpr std::string_view name = "deltaformer";
  Heads q, k, v;  // q, k and v have the same number of heads
  Segments queries, keys;
  double scale = 1;
  std::optional<Math> math = {};
  Tensor gain;  // [query tokens, q.heads], f64 if q is f64, otherwise f32
  Heads earlier = {};
  Heads y;
  Tensor log_denominator = {};
  Heads read = {};
};

/// The backward pass of DeltaFormer. It requires as many queries as keys in every sequence. S_ij
/// are the softmax weights, g_i is the gain of row i, and z_i (`read`) is the mean of the earlier
/// outputs y_j with the weights S_ij. W = (I - diag(g) S)^-T dy is computed from the last row to
/// the first:
///   W_j = dy_j + sum_(i>j) S_ij g_i W_i.
/// The gradients of v, the gain, the scores, q and k are
///   dv_j = W_j;  dg_i = W_i . z_i;  dS_ij = S_ij (g_i W_i . y_j - g_i W_i . z_i);
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
