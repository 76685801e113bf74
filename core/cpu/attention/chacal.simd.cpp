#include "core/cpu/attention/chacal_gradients.h"
#include "core/cpu/attention/chacal_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"

namespace longhand {
struct Chacal;
}

namespace longhand::cpu {

template <>
const KernelsOf<Chacal>& kernels<KernelsOf<Chacal>, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  return on_vectors<Chacal, ChacalRows, ChacalGradients>;
}

}  // namespace longhand::cpu
