#include "core/cpu/attention/tables.h"
#include "core/cpu/attention/tra_gradients.h"
#include "core/cpu/attention/tra_rows.h"
#include "core/cpu/isa.h"

namespace longhand {
struct TraRule;
}

namespace longhand::cpu {

template <>
const KernelsOf<TraRule>& kernels<KernelsOf<TraRule>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<TraRule, TraRows, TraGradients>;
}

}  // namespace longhand::cpu
