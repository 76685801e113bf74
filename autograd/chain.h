#pragma once

#include "autograd/attention.h"
#include "core/contract/chain.h"

/// Differentiable form of core/contract/chain.h.
namespace longhand {

/// Returns [query tokens, q.heads * v.width]. gain has the master type: [1] or [q.heads] for
/// attention, [query tokens, q.heads] for values. `earlier`, needed if there are fewer queries than
/// keys, is not differentiated, so no input may then require a gradient. q and k must not share
/// columns.
Var chain(ChainOf of, const ScoreVars& scores, const HeadVars& v, const Var& gain,
          const Heads& earlier = {});
HeadsBackward chain_into(ChainOf of, const ScoreVars& scores, const HeadVars& v, const Var& gain,
                         const Heads& y, const Heads& earlier = {});

}  // namespace longhand
