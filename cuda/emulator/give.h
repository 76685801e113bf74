#pragma once

#include <functional>

#include "cuda/stream.h"

namespace longhand::cuda {

/// Does the work, or adds it to what the stream records.
void give(Stream& stream, std::function<void()> work);

}  // namespace longhand::cuda
