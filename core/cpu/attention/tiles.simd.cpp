#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

/// The kernels of avx512bf16, with `fast` and `bf16` replaced by kernels on tile registers. Single
/// queries still use vectors.
template <class T>
ByProduct<AttentionKernels<T>> forward_on_tiles() {
  ByProduct<AttentionKernels<T>> all = kernels<ByProduct<AttentionKernels<T>>, Isa::avx512bf16>();
  all.fast = forward_kernels<T, Tiled<TileRegisters, 2>, SoftmaxRows>;
  all.bf16 = forward_kernels<T, Tiled<TileRegisters, 1>, SoftmaxRows>;
  return all;
}
template <class T>
ByProduct<AttentionGradientKernels<T>> backward_on_tiles() {
  ByProduct<AttentionGradientKernels<T>> all =
      kernels<ByProduct<AttentionGradientKernels<T>>, Isa::avx512bf16>();
  all.fast = gradient_kernels<T, Tiled<TileRegisters, 2>, SoftmaxGradients>;
  all.bf16 = gradient_kernels<T, Tiled<TileRegisters, 1>, SoftmaxGradients>;
  return all;
}

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const ByProduct<AttentionKernels<float>>&
kernels<ByProduct<AttentionKernels<float>>, Isa::LONGHAND_ISA>() {
  static const auto table = LONGHAND_ISA::attention::forward_on_tiles<float>();
  return table;
}
template <>
const ByProduct<AttentionKernels<bf16>>&
kernels<ByProduct<AttentionKernels<bf16>>, Isa::LONGHAND_ISA>() {
  static const auto table = LONGHAND_ISA::attention::forward_on_tiles<bf16>();
  return table;
}
template <>
const ByProduct<AttentionGradientKernels<float>>&
kernels<ByProduct<AttentionGradientKernels<float>>, Isa::LONGHAND_ISA>() {
  static const auto table = LONGHAND_ISA::attention::backward_on_tiles<float>();
  return table;
}
template <>
const ByProduct<AttentionGradientKernels<bf16>>&
kernels<ByProduct<AttentionGradientKernels<bf16>>, Isa::LONGHAND_ISA>() {
  static const auto table = LONGHAND_ISA::attention::backward_on_tiles<bf16>();
  return table;
}

}  // namespace longhand::cpu
