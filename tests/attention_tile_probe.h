#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// Attention with tile registers, computed by TileModel with the vectors of each instruction set
/// (attention_tile_probe.simd.cpp).
struct AttentionTileProbe {
  ByProduct<AttentionKernels<float>> forward;
  ByProduct<AttentionGradientKernels<float>> backward;
};

}  // namespace longhand::cpu
