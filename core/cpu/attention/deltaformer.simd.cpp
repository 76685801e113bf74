#include "core/cpu/attention/deltaformer_gradients.h"
#include "core/cpu/attention/deltaformer_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct DeltaFormer;
}

namespace longhand::cpu {

template <>
const KernelsOf<DeltaFormer>& kernels<KernelsOf<DeltaFormer>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<DeltaFormer, DeltaFormerRows, DeltaFormerGradients>;
}

}  // namespace longhand::cpu
