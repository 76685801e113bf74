#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// The gated delta rule. A memory stores a value for each key. Each token lets the memory decay and
/// corrects the value stored under the token's key.
namespace longhand {

/// Each key head of a sequence has a memory S [k.width, v.width], which starts at `before`, or at 0
/// if `before` is empty. In the formulas, q and k are already multiplied by `scale`, b_t is beta_t,
/// and a_t is exp(decay_t). For the tokens t = 1, 2, ...
///   w_t = v_t - a_t S_(t-1)^T k_t;  S_t = a_t S_(t-1) + b_t k_t w_t^T;  y_t = S_t^T q_t.
/// Hence S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T. For a key vector of norm 1, b_t = 1
/// replaces the old value by the new one, and b_t = 2 changes the sign of the old value and adds
/// twice the new one. If `decay` is empty, a_t is 1. If q has G times as many heads as k, query
/// head h reads the memory of key head h / G.
///
/// beta and decay [tokens, k.heads], the memories and `error` are f64 if q is f64, otherwise f32.
/// Products are computed in f32 in every math mode, because each write to the memory depends on all
/// earlier writes and on their rounding errors. w is saved in `error`, [tokens, k.heads * v.width],
/// unless `error` is empty. `after` receives each sequence's last memory and may be the same tensor
/// as `before`. A sequence without tokens keeps its memory.
struct Delta {
  static constexpr std::string_view name = "delta";
  Heads q, k, v;
  Segments segments;  // must cover all rows of q
  double scale = 1;
  Tensor beta;
  Tensor decay = {};
  Tensor before = {};  // initial memories, [sequences, k.heads * k.width * v.width]
  Heads y;
  Tensor error = {};
  Tensor after = {};
};

/// The backward pass of Delta for memories S that start at 0. For token t, let w_t be the saved
/// `error`, b_t = beta_t, a_t = exp(decay_t) and u_t = b_t w_t. In the formulas, q and k are
/// already multiplied by `scale`, and dq and dk are multiplied by it afterwards. dS_t is the
/// gradient of the memory S_t through y_t and all later tokens. <A, B> is the sum of the products
/// of corresponding entries. The tokens are processed from the last to the first:
///   dS_t = q_t dy_t^T + a_(t+1) (dS_(t+1) - k_(t+1) dw_(t+1)^T);
///   du_t = dS_t^T k_t;  dw_t = dv_t = b_t du_t;  db_t = du_t . w_t;
///   dq_t = S_t dy_t;  dk_t = dS_t u_t - a_t S_(t-1) dw_t;
///   ddecay_t = a_t <S_(t-1), dS_t - k_t dw_t^T>.
/// If several query heads read one memory, q_t dy_t^T is summed over these heads.
struct DeltaBackward {
  static constexpr std::string_view name = "delta_backward";
  Heads q, k, dy;
  Segments segments;
  double scale = 1;
  Tensor beta;
  Tensor decay = {};
  Tensor error;
  HeadsTarget dq = {}, dk = {}, dv = {};
  Target dbeta = {}, ddecay = {};
};

/// The number of entries in all memories of one sequence.
inline std::int64_t delta_memory(const Heads& k, std::int64_t v_width) {
  return k.heads * k.width * v_width;
}

void check(const Delta& op);
void check(const DeltaBackward& op);

}  // namespace longhand
