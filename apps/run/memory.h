#pragma once

#include <string>

#include "apps/run/config.h"
#include "nn/training/memory_estimate.h"

namespace longhand::app {

/// "1.5 MiB"
std::string size_in_words(double bytes);

/// The memory that a training of this configuration needs on one of `ranks` ranks, from a few of
/// its first samples. In a step with many sequences, the others are assumed to be like these on
/// average.
nn::MemoryEstimate memory_for(const Config& config, const tasks::Task& task,
                              std::int64_t ranks = 1);

/// The need in one line, next to the machine's memory. Throws an Error if the machine has less,
/// including swap and within its container's limit. Nothing is known about a GPU's memory in
/// advance.
std::string require_memory(const Config& config, const tasks::Task& task, std::int64_t ranks = 1);

}  // namespace longhand::app
