#pragma once

#include <optional>

#include "autograd/heads.h"

/// Differentiable operation of core/contract/delta.h.
namespace longhand {

struct DeltaVars {
  HeadVars q, k, v;
  Segments segments;
  std::optional<double> scale = {};  // default: 1 / sqrt(width)
  Var beta;                          // strength of each token's correction, [tokens, k.heads]
  Var decay = {};                    // ln of each decay factor, [tokens, k.heads]; empty: no decay
};

/// `before` contains the memories of the delta rule before the first token of each sequence.
/// `after` receives the memories after the last token. `before` and `after` may be the same tensor.
/// They have no gradient: if one of them is given, no input may require a gradient.
struct DeltaMemories {
  Tensor before = {}, after = {};
};

/// Returns the output y of the delta rule, [tokens, q.heads * v.width].
Var delta(const DeltaVars& inputs, const DeltaMemories& memories = {});

}  // namespace longhand
