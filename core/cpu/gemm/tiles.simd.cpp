#include "core/cpu/gemm/tile_format.h"

#if defined(LONGHAND_ISA_IS_AMX)

namespace longhand::cpu::LONGHAND_ISA {

extern const PanelFormat tile_one_format = tile_format<TileRegisters, 1>;
extern const PanelFormat tile_two_format = tile_format<TileRegisters, 2>;

}  // namespace longhand::cpu::LONGHAND_ISA

#endif
