#include "apps/run/batches.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/random_order.h"
#include "core/rng.h"
#include "nn/losses.h"

namespace longhand::app {
namespace {

tasks::Sample training_sample(const tasks::Task& task, std::uint64_t seed, std::int64_t step,
                              std::uint32_t index, int head, std::int64_t set) {
  const auto at = static_cast<std::uint64_t>(step);
  if (set == 0) {
    Rng rng(seed, Purpose::data, at, index);
    return task.sample(rng, head);
  }
  const int heads = task.heads();
  const auto of_head = static_cast<std::uint32_t>((set - head + heads - 1) / heads);
  Rng draw(seed, Purpose::sampling, at, index);
  const std::int64_t j = static_cast<std::int64_t>(draw.below(of_head)) * heads + head;
  Rng rng(seed, Purpose::data, 0, static_cast<std::uint32_t>(j));
  return task.sample(rng, head);
}

/// For a task with a fixed list of samples: the sample that training reads after n others. Every
/// epoch reads the whole list in a new random order.
tasks::Sample numbered_sample(const tasks::Task& task, std::uint64_t seed, std::uint64_t n) {
  const std::uint64_t count = task.count();
  const RandomOrder order(count, seed, Purpose::data, n / count);
  return task.sample_at(order[n % count], order.shift());
}

/// Drops all tokens after the last scored target. A sample without scored targets is not changed.
void cut_tail(tasks::Sample& sample, std::int64_t groups) {
  std::size_t outputs = sample.targets.size();
  while (outputs > 0 && sample.targets[outputs - 1] == tasks::Sample::not_counted) --outputs;
  if (outputs == 0) return;
  const auto each = static_cast<std::size_t>(groups);
  const std::size_t tokens = (outputs + each - 1) / each;
  sample.tokens.resize(tokens);
  if (!sample.positions.empty()) sample.positions.resize(tokens);
  sample.targets.resize(tokens * each);
  if (!sample.weights.empty()) sample.weights.resize(tokens * each);
}

}  // namespace

nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task) {
  nn::Batch batch{.lengths = {},
                  .targets = {},
                  .groups = task.outputs().groups,
                  .lists_counted = task.outputs().classes >= nn::many_classes};
  for (const tasks::Sample& sample : samples) {
    batch.lengths.push_back(static_cast<std::int32_t>(sample.tokens.size()));
    batch.tokens.insert(batch.tokens.end(), sample.tokens.begin(), sample.tokens.end());
    batch.targets.insert(batch.targets.end(), sample.targets.begin(), sample.targets.end());
    batch.weights.insert(batch.weights.end(), sample.weights.begin(), sample.weights.end());
    batch.positions.insert(batch.positions.end(), sample.positions.begin(), sample.positions.end());
    batch.head = sample.head;
  }
  return batch;
}

namespace {

/// Number of sequences of a batch if the task has a fixed list of samples.
std::int64_t numbered_sequences(const tasks::Task& task, const BatchPlan& plan) {
  if (plan.tokens == 0) return plan.sequences;
  // If the task predicts next tokens, the last token of a sample has no target, so cut_tail() drops
  // it.
  const std::int64_t longest = task.longest() - (task.outputs().says_next ? 1 : 0);
  return std::max<std::int64_t>(1, plan.tokens / longest);
}

nn::BatchSource numbered_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan) {
  LONGHAND_CHECK(plan.set == 0,
                 "--set: expected 0 (no random training set), because the task already has a fixed "
                 "list of ",
                 task->count(), " training samples; got ", plan.set);
  plan.sequences = numbered_sequences(*task, plan);
  return [task = std::move(task), seed, plan](std::int64_t step, std::int64_t place) {
    const std::int64_t first = ((step - 1) * plan.batches + place) * plan.sequences;
    std::vector<tasks::Sample> samples;
    for (std::int64_t i = 0; i < plan.sequences; ++i) {
      samples.push_back(numbered_sample(*task, seed, static_cast<std::uint64_t>(first + i)));
      cut_tail(samples.back(), task->outputs().groups);
    }
    return batch_of(samples, *task);
  };
}

}  // namespace

std::int64_t steps_of_epochs(double epochs, const tasks::Task& task, BatchPlan plan) {
  const bool is_numbered = task.count() > 0;
  LONGHAND_CHECK(is_numbered || plan.set > 0,
                 "expected a training set (--set N) or a task with a fixed list of samples, such "
                 "as \"text\"; this task draws new samples in every step");
  LONGHAND_CHECK(
      is_numbered || plan.tokens == 0,
      "expected --batch instead of --batch-tokens, because --epochs needs the same number of "
      "sequences in every batch");
  const double samples = static_cast<double>(is_numbered ? task.count() : plan.set);
  const std::int64_t each = is_numbered ? numbered_sequences(task, plan) : plan.sequences;
  return std::llround(std::ceil(epochs * samples / static_cast<double>(each * plan.batches)));
}

nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 BatchPlan plan) {
  if (task->count() > 0) return numbered_batches(std::move(task), seed, plan);
  const std::int64_t set = plan.set;
  LONGHAND_CHECK(set == 0 || (set >= task->heads() && set <= largest_training_set),
                 "--set: expected 0 or a number of samples from ", task->heads(), " to ",
                 largest_training_set, ", got ", set);
  return [task = std::move(task), seed, plan](std::int64_t step, std::int64_t place) {
    const int head = static_cast<int>((step - 1) % task->heads());
    const std::int64_t most = plan.tokens ? plan.tokens : plan.sequences;
    std::vector<tasks::Sample> samples;
    std::int64_t tokens = 0;
    for (std::int64_t i = 0; i < most; ++i) {
      const auto index = static_cast<std::uint32_t>(place * most + i);
      tasks::Sample sample = training_sample(*task, seed, step, index, head, plan.set);
      cut_tail(sample, task->outputs().groups);
      tokens += std::ssize(sample.tokens);
      if (plan.tokens && tokens > plan.tokens && i > 0) break;
      samples.push_back(std::move(sample));
    }
    return batch_of(samples, *task);
  };
}

}  // namespace longhand::app
