#pragma once

#include "autograd/attention.h"

namespace longhand {

/// The attention weights to be increased, and by how much. The weight of a listed pair of a query
/// and a key is increased if it exceeds `threshold`. See core/contract/reinforce.h.
struct Reinforcement {
  /// The n pairs of a query and a key whose weights may be increased, i32 [n, 2]: the row of the
  /// query and the position of the key. May be empty.
  Tensor pairs;
  /// [q.heads], of the master type: for each head, the number by which its weights are increased.
  Tensor amounts;
  double threshold = 0;
};

/// Attention in which the weights of listed pairs are increased. The operation has no backward
/// pass, so it throws an Error if an input requires a gradient.
Tensor reinforced_attention(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                            const Var& sink = {});
void reinforced_attention_into(const ScoreVars& scores, const HeadVars& v, const Reinforcement& by,
                               const Heads& y, const Var& sink = {});

}  // namespace longhand
