#pragma once

#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Chains of values, with a gain for each token.
void gained_chain(CudaBackend& backend, const Chain& op);
void gained_chain(CudaBackend& backend, const ChainBackward& op);

}  // namespace longhand::cuda
