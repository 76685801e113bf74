#pragma once

#include <optional>

#include "autograd/heads.h"
#include "core/contract/deltaformer.h"

/// Differentiable operation of core/contract/deltaformer.h.
namespace longhand {

struct DeltaFormerVars {
  HeadVars q, k, v;
  Var gain;  // factor of the earlier outputs, [query tokens, q.heads], of the master type
  Segments queries;
  Segments keys = {};                // default: the segments of the queries
  std::optional<double> scale = {};  // default: 1 / sqrt(width)
  std::optional<Math> math = {};
};

/// Returns y, [query tokens, q.heads * v.width]. If there are fewer queries than keys, `earlier`
/// contains the outputs at the positions before the first query. `earlier` has no gradient, so if
/// it is given, no input may require a gradient. q and k must not share columns.
Var deltaformer(const DeltaFormerVars& inputs, const Heads& earlier = {});

}  // namespace longhand
