#pragma once

#include <string_view>

#include "core/combinations.h"
#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_i = f(a_i, b_i), a formula of core/combinations.h. y has the common shape of a and b under
/// broadcasting: axes are matched from the last one on, and an operand that lacks an axis, or has
/// one entry along it, is repeated. All three have one type; y may share the memory of an operand
/// of the same shape.
struct Combine {
  static constexpr std::string_view name = "combine";
  Combination f{};
  Tensor a, b;
  Target y;
};

void check(const Combine& op);

}  // namespace longhand
