#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

template <>
const ByProduct<AttentionGradientKernels<float>>&
kernels<ByProduct<AttentionGradientKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradients_on_vectors<float,
                                                       LONGHAND_ISA::attention::SoftmaxGradients>;
}
template <>
const ByProduct<AttentionGradientKernels<bf16>>&
kernels<ByProduct<AttentionGradientKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradients_on_vectors<bf16,
                                                       LONGHAND_ISA::attention::SoftmaxGradients>;
}

}  // namespace longhand::cpu
