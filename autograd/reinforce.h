#pragma once

#include "autograd/attention.h"

namespace longhand {

/// The attention weights to be increased, and by how much; see core/contract/reinforce.h.
struct Reinforcement {
  Tensor pairs;    // i32 [n, 2]; empty: no weight is changed
  Tensor amounts;  // [q.heads], of the master type
  double threshold = 0;
};

/// Attention with increased weights. Throws an Error if a gradient is required, because it has
/// none.
Tensor reinforced_attention(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                            const Var& sink = {});
void reinforced_attention_into(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                               const Heads& y, const Var& sink = {});

}  // namespace longhand
