#include "core/cpu/attention/entmax_gradients.h"
#include "core/cpu/attention/entmax_rows.h"
#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/attention/stick_breaking_gradients.h"
#include "core/cpu/attention/stick_breaking_rows.h"
#include "core/cpu/attention/tra_gradients.h"
#include "core/cpu/attention/tra_rows.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

template <class T>
constexpr ByRule<AttentionKernels<T>> forward_table{
    .stick = forward_on_vectors<T, StickBreakingRows>,
    .tra = forward_on_vectors<T, TraRows>,
    .entmax = {entmax_kernels<T, Exact>, entmax_kernels<T, Exact>, entmax_kernels<T, Bf16>}};

template <class T>
constexpr ByRule<AttentionGradientKernels<T>> gradient_table{
    .stick = gradients_on_vectors<T, StickBreakingGradients>,
    .tra = gradients_on_vectors<T, TraGradients>,
    .entmax = gradients_on_vectors<T, EntmaxGradients>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const ByRule<AttentionKernels<float>>&
kernels<ByRule<AttentionKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_table<float>;
}
template <>
const ByRule<AttentionKernels<bf16>>& kernels<ByRule<AttentionKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_table<bf16>;
}
template <>
const ByRule<AttentionGradientKernels<float>>&
kernels<ByRule<AttentionGradientKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradient_table<float>;
}
template <>
const ByRule<AttentionGradientKernels<bf16>>&
kernels<ByRule<AttentionGradientKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradient_table<bf16>;
}

}  // namespace longhand::cpu
