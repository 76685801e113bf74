#pragma once

#include "core/contract/attention.h"
#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Attention by rules other than softmax (core/rules.h).
void attend_by_rule(CudaBackend& backend, const Attention& op);
void rule_gradients(CudaBackend& backend, const AttentionBackward& op);

}  // namespace longhand::cuda
