#pragma once

#include <string_view>

#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y[to(i)] = x[from(i)] for every index i of `shape`. This copies parts of tensors, permutes axes
/// or repeats entries. x and y have float types with the same master type, and entries are
/// converted if the types differ. No two indices may write the same entry of y. Entries that no
/// index writes do not change.
struct Rearrange {
  static constexpr std::string_view name = "rearrange";
  Shape shape;
  Tensor x;
  Steps from;
  Target y;
  Steps to;
};

void check(const Rearrange& op);

}  // namespace longhand
