#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// The attention kernels for AMX tile registers, with TileModel in place of the real registers.
/// attention_tile_probe.simd.cpp compiles one table of these kernels for each other instruction
/// set.
struct AttentionTileProbe {
  ByProduct<AttentionKernels<float>> forward;
  ByProduct<AttentionGradientKernels<float>> backward;
};

}  // namespace longhand::cpu
