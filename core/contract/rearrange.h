#pragma once

#include <string_view>

#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y[to(i)] = x[from(i)] for every index i of `shape`: copies parts of tensors, permutes axes or
/// repeats entries. x and y are floats of one master type, converted where their types differ.
/// Entries of y that no index writes do not change, and no two indices write the same entry.
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
