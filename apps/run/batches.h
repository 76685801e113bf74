#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "nn/batch.h"
#include "tasks/task.h"

namespace longhand::app {

/// Joins samples to a batch.
nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task);

/// The size of the training set and of the batches of a step. A step has `batches` batches of
/// `sequences` sequences each. If `tokens` is not 0, a batch instead has as many sequences as fit
/// into `tokens` tokens, but at least one. `set` is the number of samples of the training set; 0:
/// every step draws new samples.
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
/// If a task has a fixed list of samples, every epoch contains each sample once, in an order
/// determined by (seed, epoch) (core/random_order.h). Successive batches and steps read the epochs
/// in order. If the plan limits the tokens of a batch, a batch of such a task contains as many
/// sequences as would fit if all had the task's maximum length.
///
/// Samples of other tasks are drawn anew from the random stream (seed, data, s, b * n + i) if the
/// plan has no training set. A training set is never stored: its sample j is drawn from the stream
/// (seed, data, 0, j), which is not the stream of any step, because steps count from 1. So a
/// smaller set is the beginning of a larger one with the same seed. Training draws from the set
/// with replacement. Sample j belongs to output head j mod h, where h is the task's number of
/// output heads.
nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan);

/// Number of training steps, rounded up, for `epochs` passes over the task's fixed list of samples
/// or over the plan's training set. Throws an Error if every step draws new samples. Also throws an
/// Error if the plan has a training set and limits the tokens of a batch, because the number of
/// sequences then varies.
std::int64_t steps_of_epochs(double epochs, const tasks::Task& task, BatchPlan plan);

// Maximum number of samples of a training set. A sample's number is the index of its random stream,
// which has 32 bits.
inline constexpr std::int64_t largest_training_set = 0xffff'ffff;

}  // namespace longhand::app
