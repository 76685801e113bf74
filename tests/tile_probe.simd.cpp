#include "tests/tile_probe.h"

#include "core/cpu/gemm/tile_format.h"
#include "core/cpu/isa.h"
#include "tests/tile_model.h"

namespace longhand::cpu {

template <>
const TileProbe& kernels<TileProbe, Isa::LONGHAND_ISA>() {
  static constexpr TileProbe probe{.one = LONGHAND_ISA::tile_format<LONGHAND_ISA::TileModel, 1>,
                                   .two = LONGHAND_ISA::tile_format<LONGHAND_ISA::TileModel, 2>};
  return probe;
}

}  // namespace longhand::cpu
