#pragma once

#include "autograd/heads.h"
#include "core/contract/fal.h"

/// Differentiable form of core/contract/fal.h.
namespace longhand {

struct FalVars {
  HeadVars q, k, v;
  Segments queries;
  Segments keys = {};  // empty: the queries'
};

struct FalResult {
  Var y;         // [query tokens, q.heads * v.width]
  Tensor match;  // m of every query and head, -1 for none; i32 [query tokens, q.heads]
};
FalResult fal(const FalVars& inputs);
/// match may be empty, or a tensor to be filled.
HeadsBackward fal_into(const FalVars& inputs, const Heads& y, Tensor match = {});

}  // namespace longhand
