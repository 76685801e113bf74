#pragma once

#include <functional>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Runs `rank` on `size` threads of this process. Each thread is one rank and has its own
/// communicator. If a rank throws an exception, ranks that wait for this rank throw RankLost. Waits
/// until all threads have ended. If ranks have failed, then rethrows the exception of the lowest
/// rank that did not fail because of another rank.
void run_ranks(int size, const std::function<void(Communicator&)>& rank);

}  // namespace longhand::nn
