#pragma once

#include "autograd/attention.h"
#include "core/contract/chacal.h"

/// Differentiable operation of core/contract/chacal.h.
namespace longhand {

/// ChaCAL attention. Returns y, [query tokens, q.heads * v.width]. gamma, the weight of earlier
/// outputs, is [1] or [q.heads] and has the master type. If there are fewer queries than keys,
/// `earlier` contains the outputs at the positions before the first query. `earlier` has no
/// gradient, so if it is given, no input may require a gradient. For the sink see SoftmaxRule.
Var chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma, const Heads& earlier = {},
           const Var& sink = {});
HeadsBackward chacal_into(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                          const Heads& y, const Heads& earlier = {}, const Var& sink = {});

}  // namespace longhand
