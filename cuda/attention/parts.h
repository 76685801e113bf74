#pragma once

#include "cuda/cuda_backend.h"

namespace longhand::cuda {

/// Into how many parts the keys of each tile of queries are cut, each a block's: 1 where there are
/// blocks enough, or queries enough to be trained with. Follows from shapes alone.
int key_parts(const Attention& op);
void attend_in_parts(CudaBackend& backend, const Attention& op, int parts);

}  // namespace longhand::cuda
