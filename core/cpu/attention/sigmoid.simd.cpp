#include "core/cpu/attention/sigmoid_gradients.h"
#include "core/cpu/attention/sigmoid_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct SigmoidRule;
}

namespace longhand::cpu {

template <>
const KernelsOf<SigmoidRule>& kernels<KernelsOf<SigmoidRule>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<SigmoidRule, SigmoidRows, SigmoidGradients>;
}

}  // namespace longhand::cpu
