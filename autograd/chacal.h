#pragma once

#include "autograd/attention.h"
#include "core/contract/chacal.h"

/// Differentiable operation of core/contract/chacal.h.
namespace longhand {

/// Returns y, [query tokens, q.heads * v.width]. gamma is [1] or [q.heads] and has the master type.
/// If there are fewer queries than keys, `earlier` contains the outputs at the positions before the
/// first query. It is not differentiated, so with `earlier` no input may require a gradient. For
/// the sink see SoftmaxRule.
Var chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma, const Heads& earlier = {},
           const Var& sink = {});
HeadsBackward chacal_into(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                          const Heads& y, const Heads& earlier = {}, const Var& sink = {});

}  // namespace longhand
