#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Joins samples to a batch.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// The size of each of a step's batches: a number of sequences, or as many sequences as have at
/// most `tokens` tokens together, but at least one. Also the number of batches per step, and the
/// size of the training set (0: endless).
struct BatchPlan {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  // 0: count sequences
  std::int64_t batches = 1;
  std::int64_t set = 0;
};

/// Training data. Sequence i of batch b of step s depends only on (seed, s, b * n + i), where n is
/// the plan's number of sequences or tokens. Steps alternate between the task's output heads.
/// Tokens after a sample's last scored target are left out, because no loss depends on them.
///
/// If a task's samples are numbered, an epoch has each once, in the order named by (seed, epoch)
/// (core/random_order.h), and steps and batches pass through the epochs. With a plan by tokens, a
/// batch holds as many sequences as fit if all are as long as the task's longest.
///
/// Endless data is drawn from the stream (seed, data, s, b * n + i). A training set is never
/// stored: its sample j is the stream (seed, data, 0, j), which no step of an endless run uses, so
/// a smaller set is the beginning of a larger one with the same seed. Its samples are drawn with
/// replacement. They are assigned to the output heads in turn, sample j to head j mod heads.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan);

// the index of a stream has 32 bits
inline constexpr std::int64_t largest_training_set = 0xffff'ffff;

}  // namespace longhand::app
