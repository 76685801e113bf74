#pragma once

#include <optional>

#include "autograd/heads.h"
#include "core/contract/deltaformer.h"

/// Differentiable form of core/contract/deltaformer.h.
namespace longhand {

struct DeltaFormerVars {
  HeadVars q, k, v;
  Var gain;  // [query tokens, q.heads], of the master type
  Segments queries;
  Segments keys = {};                // empty: the segments of the queries
  std::optional<double> scale = {};  // none: 1 / sqrt(width)
  std::optional<Math> math = {};
};

/// Returns y, [query tokens, q.heads * v.width]. `earlier`, needed if there are fewer queries than
/// keys, is not differentiated, so no input may then require a gradient. q and k must not share
/// columns.
Var deltaformer(const DeltaFormerVars& inputs, const Heads& earlier = {});

}  // namespace longhand
