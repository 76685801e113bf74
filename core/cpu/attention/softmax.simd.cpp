#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct SoftmaxRule;
}

namespace longhand::cpu {

template <>
const KernelsOf<SoftmaxRule>& kernels<KernelsOf<SoftmaxRule>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<SoftmaxRule, SoftmaxRows, SoftmaxGradients>;
}

}  // namespace longhand::cpu
