#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

template <class T>
constexpr ByProduct<AttentionKernels<T>> table{forward_kernels<T, Exact, SoftmaxRows>,
                                               forward_kernels<T, Exact, SoftmaxRows>,
                                               forward_kernels<T, Bf16, SoftmaxRows>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const ByProduct<AttentionKernels<float>>&
kernels<ByProduct<AttentionKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<float>;
}
template <>
const ByProduct<AttentionKernels<bf16>>&
kernels<ByProduct<AttentionKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<bf16>;
}

}  // namespace longhand::cpu
