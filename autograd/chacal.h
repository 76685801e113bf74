#pragma once

#include "autograd/attention.h"
#include "core/contract/chacal.h"

/// Differentiable form of core/contract/chacal.h.
namespace longhand {

/// Returns [query tokens, q.heads * v.width]. gamma has the master type: [1] or [q.heads].
/// `earlier`, needed if there are fewer queries than keys, is not differentiated, so no input may
/// then require a gradient. The sink is that of SoftmaxRule.
Var chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma, const Heads& earlier = {},
           const Var& sink = {});
HeadsBackward chacal_into(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                          const Heads& y, const Heads& earlier = {}, const Var& sink = {});

}  // namespace longhand
