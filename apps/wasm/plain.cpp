#include "core/cpu/isa.h"

namespace longhand::cpu {

bool relaxed_is_fused() { return false; }

}  // namespace longhand::cpu
