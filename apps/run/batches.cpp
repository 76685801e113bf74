#include "apps/run/batches.h"

#include <vector>

#include "core/rng.h"

namespace longhand::app {

nn::Batch batch_of(std::span<const tasks::Sample> samples, const tasks::Task& task) {
  nn::Batch batch{.lengths = {}, .targets = {}, .groups = task.outputs().groups};
  for (const tasks::Sample& sample : samples) {
    batch.lengths.push_back(static_cast<std::int32_t>(sample.tokens.size()));
    batch.tokens.insert(batch.tokens.end(), sample.tokens.begin(), sample.tokens.end());
    batch.targets.insert(batch.targets.end(), sample.targets.begin(), sample.targets.end());
    batch.weights.insert(batch.weights.end(), sample.weights.begin(), sample.weights.end());
    batch.head = sample.head;
  }
  return batch;
}

nn::BatchSource training_batches(std::shared_ptr<const tasks::Task> task, std::uint64_t seed,
                                 std::int64_t sequences) {
  return [task = std::move(task), seed, sequences](std::int64_t step, std::int64_t part) {
    const int head = static_cast<int>((step - 1) % task->heads());
    std::vector<tasks::Sample> samples;
    for (std::int64_t i = 0; i < sequences; ++i) {
      Rng rng(seed, Purpose::data, static_cast<std::uint64_t>(step),
              static_cast<std::uint32_t>(part * sequences + i));
      samples.push_back(task->sample(rng, head));
    }
    return batch_of(samples, *task);
  };
}

}  // namespace longhand::app
