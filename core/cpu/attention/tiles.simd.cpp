#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

/// Returns a copy of `all` in which the kernels of the math modes `fast` and `bf16` are replaced by
/// kernels with products on tile registers.
template <class T>
PassKernels<T> on_tiles(PassKernels<T> all) {
  using Split = Tiled<TileRegisters, 2>;
  using Rounded = Tiled<TileRegisters, 1>;
  all.forward.fast = forward_kernels<T, Split, SoftmaxRows>;
  all.forward.bf16 = forward_kernels<T, Rounded, SoftmaxRows>;
  all.backward.fast = gradient_kernels<T, Split, SoftmaxGradients>;
  all.backward.bf16 = gradient_kernels<T, Rounded, SoftmaxGradients>;
  return all;
}

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const KernelsOf<SoftmaxRule>& kernels<KernelsOf<SoftmaxRule>, Isa::LONGHAND_ISA>() {
  using LONGHAND_ISA::attention::on_tiles;
  const auto& vectors = kernels<KernelsOf<SoftmaxRule>, Isa::avx512bf16>();
  static const KernelsOf<SoftmaxRule> all{on_tiles(vectors.of_f32), on_tiles(vectors.of_bf16)};
  return all;
}

}  // namespace longhand::cpu
