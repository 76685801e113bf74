#pragma once

#include "core/cpu/gemm/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// Panel formats of products with AMX tiles, whose operands have one or two bf16 parts. TileModel
/// emulates the tiles. The panels are packed with the vectors of each instruction set
/// (tile_probe.simd.cpp).
struct TileProbe {
  PanelFormat one, two;
};

}  // namespace longhand::cpu
