#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// The attention kernels for processors with AMX, except that TileModel emulates the AMX tiles.
/// There is one table of these kernels for each other instruction set
/// (attention_tile_probe.simd.cpp).
struct AttentionTileProbe {
  ByProduct<AttentionKernels<float>> forward;
  ByProduct<AttentionGradientKernels<float>> backward;
};

}  // namespace longhand::cpu
