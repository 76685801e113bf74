#pragma once

#include <optional>

#include "autograd/heads.h"

/// Differentiable operation of core/contract/delta.h.
namespace longhand {

struct DeltaVars {
  HeadVars q, k, v;
  Segments segments;
  std::optional<double> scale = {};  // default: 1 / sqrt(width)
  Var beta;                          // [tokens, k.heads]
  Var decay = {};                    // [tokens, k.heads]; empty: no decay
};

/// The memories before these tokens, and the tensor that receives the memories after them. Both may
/// be the same tensor. They are not differentiated: if one of them is given, no input may require a
/// gradient.
struct DeltaMemories {
  Tensor before = {}, after = {};
};

/// Returns y, [tokens, q.heads * v.width].
Var delta(const DeltaVars& inputs, const DeltaMemories& memories = {});

}  // namespace longhand
