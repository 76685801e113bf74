#include "core/cpu/attention/stick_breaking_gradients.h"
#include "core/cpu/attention/stick_breaking_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct StickBreakingRule;
}

namespace longhand::cpu {

template <>
const KernelsOf<StickBreakingRule>& kernels<KernelsOf<StickBreakingRule>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<StickBreakingRule, StickBreakingRows, StickBreakingGradients>;
}

}  // namespace longhand::cpu
