#pragma once

#include "core/cpu/isa.h"
#include "core/rules/softmax.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The formula of DeltaFormer's softmax: a query sees only the keys before its own.
struct StrictSoftmax : rules::Softmax {
  static constexpr bool own_key = false;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
