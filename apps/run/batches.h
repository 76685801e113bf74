#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Samples side by side as a model reads them.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// Training data: sequence i of part p of step s depends on (seed, s, p * batch + i) and on nothing
/// else. Steps go round the task's output heads in turn.
///
/// `set` is the size of the training set, 0: endless. Without end, the sequence is drawn from the
/// stream (seed, data, s, p * batch + i). A set is never stored: its sample j is the stream
/// (seed, data, 0, j), which no step of an endless run has, so a smaller set of the same seed is
/// the beginning of a larger one. Its samples are drawn with replacement; they belong to the
/// output heads in turn, sample j to head j mod heads.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 std::int64_t sequences, std::int64_t set = 0);

inline constexpr std::int64_t largest_training_set = 0xffff'ffff;  // a stream's index has 32 bits

}  // namespace longhand::app
