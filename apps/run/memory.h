#pragma once

#include <string>

#include "apps/run/config.h"
#include "nn/training/memory_estimate.h"

namespace longhand::app {

/// "1.5 MiB"
std::string size_in_words(double bytes);

/// What a training of this configuration needs, found from a few of its first samples: in a step
/// with many sequences alike, the rest are as these on average.
/// On one of so many ranks.
nn::MemoryEstimate memory_for(const Config& config, const tasks::Task& task,
                              std::int64_t ranks = 1);

/// That in one line, next to what this machine has. Refused where it has less, with swap and under
/// the limit of its container. Of a GPU's memory nothing is known beforehand.
std::string require_memory(const Config& config, const tasks::Task& task, std::int64_t ranks = 1);

}  // namespace longhand::app
