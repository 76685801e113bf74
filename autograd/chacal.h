#pragma once

#include "autograd/attention.h"
#include "core/contract/chacal.h"

/// Differentiable form of core/contract/chacal.h.
namespace longhand {

/// gamma: [1] or [q.heads]. `earlier`, needed when there are fewer queries than keys, is not
/// differentiated: then no input may want a gradient.
Var chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma, const Heads& earlier = {});
HeadsBackward chacal_into(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                          const Heads& y, const Heads& earlier = {});

}  // namespace longhand
