#pragma once

#include <functional>

#include "cuda/stream.h"

namespace longhand::cuda {

/// Adds the work to the stream's recording if there is one, and otherwise enqueues it on the
/// stream.
void give(Stream& stream, std::function<void()> work);

}  // namespace longhand::cuda
