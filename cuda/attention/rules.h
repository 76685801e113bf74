#pragma once

#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Attention by the rules that go leftward (core/rules.h).
void attend_leftward(CudaBackend& backend, const Attention& op);
void leftward_gradients(CudaBackend& backend, const AttentionBackward& op);

}  // namespace longhand::cuda
