#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Samples side by side as a model reads them.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// Training data: sequence i of part p of step s comes from the stream (seed, data, s, p * batch +
/// i) and from nothing else. Steps go round the task's output heads in turn.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 std::int64_t sequences);

}  // namespace longhand::app
