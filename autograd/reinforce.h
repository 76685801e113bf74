#pragma once

#include "autograd/attention.h"

namespace longhand {

/// The attention weights that are increased, and the amounts, see core/contract/reinforce.h.
struct Reinforcement {
  Tensor pairs;    // i32 [n, 2]; empty: attention is unchanged
  Tensor amounts;  // [q.heads], of the master type
  double threshold = 0;
};

/// Attention with increased weights. Throws an Error if a gradient is required, because there is
/// none.
Tensor reinforced_attention(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by);
void reinforced_attention_into(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                               const Heads& y);

}  // namespace longhand
