#pragma once

#include "autograd/attention.h"

namespace longhand {

/// Which weights of attention grow, and by how much: see core/contract/reinforce.h.
struct Reinforcement {
  Tensor pairs;    // i32 [n, 2], or empty: attention as it is
  Tensor amounts;  // [q.heads], of the master type
  double threshold = 0;
};

/// Attention with weights made larger. An Error where a gradient is wanted: there is none.
Tensor reinforced_attention(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by);
void reinforced_attention_into(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                               const Heads& y);

}  // namespace longhand
