#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace longhand::cuda {

/// Throws an Error that names the attempted operation and CUDA's own message.
template <class... Parts>
void require(cudaError_t result, const Parts&... what) {
  LONGHAND_CHECK(result == cudaSuccess, "cuda: ", text(what...), ": ", cudaGetErrorString(result));
}

/// Selects the device of the process for the calling thread. CUDA starts every thread with the
/// first device.
void use_device();

}  // namespace longhand::cuda
