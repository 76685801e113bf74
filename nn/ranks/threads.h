#pragma once

#include <functional>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Runs `rank` on `size` threads of this process, each with its own communicator. If a rank throws,
/// ranks that wait for it throw RankLost. Returns when all threads have ended, and rethrows the
/// exception of the lowest rank that failed on its own.
void run_ranks(int size, const std::function<void(Communicator&)>& rank);

}  // namespace longhand::nn
