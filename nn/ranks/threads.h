#pragma once

#include <functional>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Runs `rank` on `size` threads of this process; each has a communicator. Returns when all threads
/// have ended, and rethrows the exception of the first rank that threw one. Ranks that wait for a
/// failed rank throw RankLost.
void run_ranks(int size, const std::function<void(Communicator&)>& rank);

}  // namespace longhand::nn
