#pragma once

#include <functional>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Runs `rank` on `size` threads of this process. Each thread is one rank and has its own
/// communicator. If a rank throws an exception, ranks that wait for this rank throw RankLost. Waits
/// until all threads have ended. If several ranks have thrown exceptions, the exception of the
/// lowest rank is rethrown. RankLost and FailedElsewhere are rethrown only if there is no other
/// exception.
void run_ranks(int size, const std::function<void(Communicator&)>& rank);

}  // namespace longhand::nn
