#pragma once

#include <string_view>

#include "core/contract/heads.h"

/// The gated delta rule: a memory that is told what a key holds, forgets and corrects it.
namespace longhand {

/// For each key head of a sequence a memory S [width, v_width], which is `before`'s or 0 at first.
/// With k and q times `scale`, b_t = beta_t and a_t = exp(decay_t), for t = 1, 2, ...
///   w_t = v_t - a_t S_(t-1)^T k_t;  S_t = a_t S_(t-1) + b_t k_t w_t^T;  y_t = S_t^T q_t
/// That is S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T: of a key of length 1, b = 1 puts
/// the new value in the old one's place, b = 2 turns what is held over. Without `decay` a is 1.
/// Query head h reads the memory of key head h / G (core/contract/heads.h).
///
/// beta and decay [tokens, k.heads], the memories and `error` are of the master type, and products
/// are f32 whatever the math mode: what is written depends on all that was. Saves w in `error`,
/// [tokens, k.heads * v.width], unless that is left empty. `after` gets each sequence's last
/// memory and may be `before` itself; a sequence without tokens keeps its own.
struct Delta {
  static constexpr std::string_view name = "delta";
  Heads q, k, v;
  Segments segments;  // tile the rows
  double scale = 1;
  Tensor beta;
  Tensor decay = {};
  Tensor before = {};  // [sequences, k.heads * width * v_width]
  Heads y;
  Tensor error = {};
  Tensor after = {};
};

/// Of memories that are 0 at first. With u_t = b_t w_t, and dS_t what later tokens and y_t send
/// back to S_t, from the last token to the first
///   dS_t = q_t dy_t^T + a_(t+1) (dS_(t+1) - k_(t+1) dw_(t+1)^T)
///   du_t = dS_t^T k_t;  dw_t = dv_t = b_t du_t;  db_t = du_t . w_t
///   dq_t = S_t dy_t;  dk_t = dS_t u_t - a_t S_(t-1) dw_t
///   ddecay_t = a_t <S_(t-1), dS_t - k_t dw_t^T>
/// With grouped keys q_t dy_t^T is the sum over the query heads that read the memory.
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

/// Numbers of a sequence's memories.
inline std::int64_t delta_memory(const Heads& k, std::int64_t v_width) {
  return k.heads * k.width * v_width;
}

void check(const Delta& op);
void check(const DeltaBackward& op);

}  // namespace longhand
