#include "core/cpu/attention/entmax_gradients.h"
#include "core/cpu/attention/entmax_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct EntmaxRule;
}

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

template <class T>
constexpr PassKernels<T> entmax_passes{
    .forward = {entmax_kernels<T, Exact>, entmax_kernels<T, Exact>, entmax_kernels<T, Bf16>},
    .backward = gradients_on_vectors<T, EntmaxGradients>};

constexpr KernelsOf<EntmaxRule> all_of_entmax{.of_f32 = entmax_passes<float>,
                                              .of_bf16 = entmax_passes<bf16>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const KernelsOf<EntmaxRule>& kernels<KernelsOf<EntmaxRule>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::all_of_entmax;
}

}  // namespace longhand::cpu
