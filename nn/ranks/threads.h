#pragma once

#include <functional>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Ranks that are threads of this process: runs `rank` on so many, each with its communicator.
/// Returns when all have ended; the exception of the first rank that threw one of its own is passed
/// on. What the others wait for from it then is RankLost.
void run_ranks(int size, const std::function<void(Communicator&)>& rank);

}  // namespace longhand::nn
