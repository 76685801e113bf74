#pragma once

#include "core/contract/attention.h"
#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Number of parts into which softmax attention divides the keys of each tile of queries. One
/// thread block processes one part. The number depends only on shapes. It is 1 if one block per
/// tile and head already gives enough blocks, or if segments have more than 16 queries on average,
/// as in training.
int key_parts(const Attention& op);
void attend_in_parts(CudaBackend& backend, const Attention& op, const SoftmaxRule& rule, int parts);

}  // namespace longhand::cuda
