#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace longhand::cuda {

/// Error with what was tried and CUDA's own words for why it failed.
template <class... Parts>
void require(cudaError_t result, const Parts&... what) {
  LONGHAND_CHECK(result == cudaSuccess, "cuda: ", text(what...), ": ", cudaGetErrorString(result));
}

}  // namespace longhand::cuda
