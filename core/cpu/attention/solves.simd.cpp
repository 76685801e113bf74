#include "core/cpu/attention/chacal_gradients.h"
#include "core/cpu/attention/chacal_rows.h"
#include "core/cpu/attention/deltaformer_gradients.h"
#include "core/cpu/attention/deltaformer_rows.h"
#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

template <class T>
constexpr BySolve<AttentionKernels<T>> forward_table{
    .chacal = forward_on_vectors<T, ChacalRows>,
    .deltaformer = forward_on_vectors<T, DeltaFormerRows>};

template <class T>
constexpr BySolve<AttentionGradientKernels<T>> gradient_table{
    .chacal = gradients_on_vectors<T, ChacalGradients>,
    .deltaformer = gradients_on_vectors<T, DeltaFormerGradients>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const BySolve<AttentionKernels<float>>&
kernels<BySolve<AttentionKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_table<float>;
}
template <>
const BySolve<AttentionKernels<bf16>>&
kernels<BySolve<AttentionKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::forward_table<bf16>;
}
template <>
const BySolve<AttentionGradientKernels<float>>&
kernels<BySolve<AttentionGradientKernels<float>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradient_table<float>;
}
template <>
const BySolve<AttentionGradientKernels<bf16>>&
kernels<BySolve<AttentionGradientKernels<bf16>>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::gradient_table<bf16>;
}

}  // namespace longhand::cpu
