#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace longhand::cuda {

/// Throws an Error if `result` is not cudaSuccess. The text contains `what`, the operation that
/// failed, and CUDA's own message.
template <class... Parts>
void require(cudaError_t result, const Parts&... what) {
  LONGHAND_CHECK(result == cudaSuccess, "cuda: ", text(what...), ": ", cudaGetErrorString(result));
}

/// Selects the device of this process for the calling thread. Until this call, CUDA uses the first
/// device in a new thread.
void use_device();

}  // namespace longhand::cuda
