#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

template <>
const ByProduct<AttentionKernels<float>>&
kernels<ByProduct<AttentionKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_on_vectors<float, LONGHAND_ISA::attention::SoftmaxRows>;
}
template <>
const ByProduct<AttentionKernels<bf16>>&
kernels<ByProduct<AttentionKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_on_vectors<bf16, LONGHAND_ISA::attention::SoftmaxRows>;
}

}  // namespace longhand::cpu
