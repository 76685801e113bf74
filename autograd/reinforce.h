#pragma once

#include "autograd/attention.h"

namespace longhand {

/// The attention weights to be increased, and by how much: a listed pair's weight is increased if
/// it exceeds `threshold`. See core/contract/reinforce.h.
struct Reinforcement {
  Tensor pairs;    // i32 [n, 2]: row of the query, position of the key; empty: nothing changes
  Tensor amounts;  // [q.heads], of the master type: the increase of each weight of a head
  double threshold = 0;
};

/// Attention with increased weights. The operation has no backward pass, so it throws an Error if
/// an input requires a gradient.
Tensor reinforced_attention(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                            const Var& sink = {});
void reinforced_attention_into(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                               const Heads& y, const Var& sink = {});

}  // namespace longhand
