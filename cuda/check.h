#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace longhand::cuda {

/// Throws an Error that names the attempted operation and CUDA's own message.
template <class... Parts>
void require(cudaError_t result, const Parts&... what) {
  LONGHAND_CHECK(result == cudaSuccess, "cuda: ", text(what...), ": ", cudaGetErrorString(result));
}

}  // namespace longhand::cuda
