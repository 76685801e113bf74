#pragma once

#include <string_view>

#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y[to(i)] = x[from(i)] for every index i of `shape`. The Steps `from` and `to` map an index to an
/// entry of x or y. The operation copies parts of tensors, permutes axes or repeats entries. Either
/// x and y are f64, or each of them is f32 or bf16. Entries are converted if the types differ. No
/// two indices may write the same entry of y. Entries of y that no index writes do not change.
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
