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

/// Training batches. Sequence i of batch b of step s depends only on the task, the plan,
/// the seed and (s, b, i). Tokens after a sample's last scored target are dropped, because no loss
/// depends on them.
///
/// If the task has a fixed list of samples, every epoch reads the whole list in an order that
/// depends on the seed and the epoch (core/random_order.h). Each batch continues where the previous
/// one ended. If the plan limits the tokens of a batch, a batch contains as many sequences as would
/// fit if all had the task's maximum length.
///
/// Other tasks draw their samples at random. A step uses one of the task's h output heads, and
/// successive steps use them in turn. The samples depend on the plan:
/// - Without a training set, sequence i of batch b of step s is drawn from the random stream (seed,
///   data, s, b * n + i), where n is the plan's `tokens` or, if `tokens` is 0, its `sequences`.
/// - A training set is not stored. Its sample j is drawn from the stream (seed, data, 0, j) when it
///   is needed, for output head j mod h. Steps count from 1, so these streams with step 0 are used
///   by the training set only. A step draws from the samples of its output head with replacement.
///   With the same seed, a smaller set is the beginning of a larger one.
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
