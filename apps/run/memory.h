#pragma once

#include <string>

#include "apps/run/config.h"
#include "nn/training/memory_estimate.h"

namespace longhand::app {

/// Formats a size, such as "1.5 MiB".
std::string size_in_words(double bytes);

/// An estimate of the memory that a training needs on each of `ranks` ranks. It examines a few of
/// the first samples, and assumes that the other sequences of a step have the same average length.
nn::MemoryEstimate memory_for(const Config& config, const tasks::Task& task,
                              std::int64_t ranks = 1);

/// One line with the estimated memory and the machine's memory. Throws an Error if the estimate
/// exceeds the machine's memory, which includes swap and is bounded by the container's limit. GPU
/// memory is not checked.
std::string require_memory(const Config& config, const tasks::Task& task, std::int64_t ranks = 1);

}  // namespace longhand::app
