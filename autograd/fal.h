#pragma once

#include "autograd/heads.h"
#include "core/contract/fal.h"

/// Differentiable operation of core/contract/fal.h.
namespace longhand {

struct FalVars {
  HeadVars q, k, v;
  Segments queries;
  Segments keys = {};  // default: the segments of the queries
};

struct FalResult {
  Var y;         // [query tokens, q.heads * v.width]
  Tensor match;  // i32 [query tokens, q.heads]: position of the query's matching key, or -1
};
FalResult fal(const FalVars& inputs);
/// If `match` is not empty, it receives the same numbers as FalResult::match.
HeadsBackward fal_into(const FalVars& inputs, const Heads& y, Tensor match = {});

}  // namespace longhand
