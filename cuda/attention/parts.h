#pragma once

#include "core/contract/attention.h"
#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Number of parts into which the keys of each tile of queries are cut, one block per part. 1 if
/// there are enough blocks, or so many queries that this may be training. Depends on shapes alone.
int key_parts(const Attention& op);
void attend_in_parts(CudaBackend& backend, const Attention& op, int parts);

}  // namespace longhand::cuda
