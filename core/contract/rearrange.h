#pragma once

#include <string_view>

#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y[to(i)] = x[from(i)] for every index i of `shape`: parts of tensors, axes in another order,
/// entries repeated. x and y are floats of one master type, converted where they differ. What of y
/// no index leads to stays as it is, and no two indices lead to the same entry of it.
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
