#pragma once

#include <string_view>

#include "core/combinations.h"
#include "core/contract/steps.h"
#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_i = f(a_i, b_i), where f is a formula of core/combinations.h. The operands are broadcast to
/// the shape of y: axes are matched from the last one on, and an operand is repeated along each
/// axis that it lacks or in which its extent is 1. All three tensors have one type. y may share the
/// memory of an operand of the same shape.
struct Combine {
  static constexpr std::string_view name = "combine";
  Combination f{};
  Tensor a, b;
  Target y;
};

void check(const Combine& op);

}  // namespace longhand
