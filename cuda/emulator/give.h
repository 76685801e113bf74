#pragma once

#include <functional>

#include "cuda/stream.h"

namespace longhand::cuda {

/// Adds the work to the CUDA graph that the stream is recording. If the stream records no graph,
/// enqueues the work on the stream.
void give(Stream& stream, std::function<void()> work);

}  // namespace longhand::cuda
