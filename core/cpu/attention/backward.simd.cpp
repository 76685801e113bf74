#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

template <class T>
constexpr ByProduct<AttentionGradientKernels<T>> table{gradient_kernels<T, Exact, SoftmaxGradients>,
                                                       gradient_kernels<T, Exact, SoftmaxGradients>,
                                                       gradient_kernels<T, Bf16, SoftmaxGradients>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const ByProduct<AttentionGradientKernels<float>>&
kernels<ByProduct<AttentionGradientKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<float>;
}
template <>
const ByProduct<AttentionGradientKernels<bf16>>&
kernels<ByProduct<AttentionGradientKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<bf16>;
}

}  // namespace longhand::cpu
