#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Samples side by side as a model reads them.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// What one of a step's batches holds: so many sequences, or as many as have together at most so
/// many tokens, but at least one; the batches of a step; and the size of the training set, 0:
/// endless.
struct BatchPlan {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  // 0: by sequences
  std::int64_t batches = 1;
  std::int64_t set = 0;
};

/// Training data: sequence i of batch b of step s depends on (seed, s, b * n + i) and on nothing
/// else, n being the plan's sequences or tokens. Steps go round the task's output heads in turn.
/// What comes after a sample's last counted target is left out: no loss depends on it.
///
/// A task whose samples are numbered has each of them once in an epoch, in the order that (seed,
/// epoch) names (core/random_order.h); steps and batches go through the epochs one after another.
/// By tokens, a batch holds as many sequences as fit if all are as long as the task's longest.
///
/// Without end, the sequence is drawn from the stream (seed, data, s, b * n + i). A set is never
/// stored: its sample j is the stream
/// (seed, data, 0, j), which no step of an endless run has, so a smaller set of the same seed is
/// the beginning of a larger one. Its samples are drawn with replacement; they belong to the
/// output heads in turn, sample j to head j mod heads.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan);

inline constexpr std::int64_t largest_training_set = 0xffff'ffff;  // a stream's index has 32 bits

}  // namespace longhand::app
