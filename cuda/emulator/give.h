#pragma once

#include <functional>

#include "cuda/stream.h"

namespace longhand::cuda {

/// Runs the work now, or adds it to the stream's recording if there is one.
void give(Stream& stream, std::function<void()> work);

}  // namespace longhand::cuda
