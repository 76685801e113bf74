#pragma once

#include "core/cpu/gemm/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// The formats of AMX, computed by TileModel with the packing of each instruction set
/// (tile_probe.simd.cpp).
struct TileProbe {
  PanelFormat one, two;
};

}  // namespace longhand::cpu
