#pragma once

#include "core/tensor.h"

namespace longhand::nn {

/// How many entries of a tensor are infinite or NaN; 0 where its type is no float.
std::int64_t count_nonfinite(const Tensor& x);

}  // namespace longhand::nn
