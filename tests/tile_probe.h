#pragma once

#include "core/cpu/gemm/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// Panel formats (layouts of packed operands) of products with AMX tiles. `one` is for operands
/// with one bf16 part, and `two` for operands that are sums of two bf16 parts. TileModel emulates
/// the tiles. The code that packs the panels is compiled for each instruction set
/// (tile_probe.simd.cpp).
struct TileProbe {
  PanelFormat one, two;
};

}  // namespace longhand::cpu
