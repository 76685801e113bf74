#pragma once

#include <optional>

#include "autograd/heads.h"

/// Differentiable form of core/contract/delta.h.
namespace longhand {

struct DeltaVars {
  HeadVars q, k, v;
  Segments segments;
  std::optional<double> scale = {};  // none: 1 / sqrt(width)
  Var beta;                          // [tokens, k.heads]
  Var decay = {};                    // the same; none: nothing is forgotten
};

/// What was remembered of earlier tokens, and where it goes on: one tensor may be both. They are
/// not differentiated: with one of them no input may want a gradient.
struct DeltaMemories {
  Tensor before = {}, after = {};
};

/// [tokens, q.heads * v.width]
Var delta(const DeltaVars& inputs, const DeltaMemories& memories = {});

}  // namespace longhand
