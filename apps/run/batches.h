#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Joins samples to a batch.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// The batches of a step, and the size of the training set (0: unlimited). A batch has a fixed
/// number of sequences. Alternatively, it has as many sequences as fit into `tokens` tokens in
/// total, but at least one.
struct BatchPlan {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  // maximum tokens of a batch; 0: use `sequences`
  std::int64_t batches = 1;
  std::int64_t set = 0;
};

/// Training data. Sequence i of batch b of step s depends only on (seed, s, b * n + i), where n is
/// the plan's number of sequences or tokens. Steps alternate between the task's output heads.
/// Tokens after a sample's last scored target are dropped, because no loss depends on them.
///
/// If a task's samples are numbered, every epoch contains each sample once, in an order determined
/// by (seed, epoch) (core/random_order.h). Successive batches and steps read the epochs in order.
/// If the plan limits tokens, a batch then contains as many sequences as would fit if all had the
/// task's maximum length.
///
/// Unlimited data is drawn from the random stream (seed, data, s, b * n + i). A training set is
/// never stored: its sample j is drawn from the stream (seed, data, 0, j), which no step of an
/// unlimited run uses. So a smaller set is the beginning of a larger one with the same seed.
/// Training draws from the set with replacement. Sample j belongs to output head j mod heads.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan);

/// Number of steps, rounded up, of this many passes over the task's numbered samples or the plan's
/// training set. Throws an Error if every step draws new samples. Also throws an Error if the plan
/// has a training set and limits the tokens of a batch, because the number of sequences then
/// varies.
std::int64_t steps_of_epochs(double epochs, const tasks::Task& task, BatchPlan plan);

// The index of a random stream has 32 bits.
inline constexpr std::int64_t largest_training_set = 0xffff'ffff;

}  // namespace longhand::app
