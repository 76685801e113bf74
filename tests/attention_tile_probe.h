#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {

/// The attention kernels for AMX tile registers, with the emulation TileModel in place of the
/// registers. They are compiled for several other instruction sets, so that tests can run them on
/// processors without AMX.
struct AttentionTileProbe {
  ByProduct<AttentionKernels<float>> forward;
  ByProduct<AttentionGradientKernels<float>> backward;
};

}  // namespace longhand::cpu
