#pragma once

#include "core/contract/attention.h"
#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Number of parts into which the keys of each tile of queries are divided, with one block per
/// part. It depends only on shapes. The keys are not divided if there are enough blocks already, or
/// if segments have more than 16 queries on average, as in training.
int key_parts(const Attention& op);
void attend_in_parts(CudaBackend& backend, const Attention& op, const SoftmaxRule& rule, int parts);

}  // namespace longhand::cuda
