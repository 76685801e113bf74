#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// Attention kernels for AMX tiles. TileModel emulates the tiles. The kernels otherwise use the
/// vectors of each instruction set (attention_tile_probe.simd.cpp).
struct AttentionTileProbe {
  ByProduct<AttentionKernels<float>> forward;
  ByProduct<AttentionGradientKernels<float>> backward;
};

}  // namespace longhand::cpu
