#pragma once

#include "autograd/attention.h"
#include "core/contract/chain.h"

/// Differentiable form of core/contract/chain.h.
namespace longhand {

/// [query tokens, q.heads * v.width]. gain: [1] or [q.heads] of attention, [query tokens, q.heads]
/// of values, of the master type. `earlier`, needed when there are fewer queries than keys, is not
/// differentiated: then no input may want a gradient. q and k must not share columns.
Var chain(ChainOf of, const ScoreVars& scores, const HeadVars& v, const Var& gain,
          const Heads& earlier = {});
HeadsBackward chain_into(ChainOf of, const ScoreVars& scores, const HeadVars& v, const Var& gain,
                         const Heads& y, const Heads& earlier = {});

}  // namespace longhand
