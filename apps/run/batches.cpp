#include "apps/run/batches.h"

#include <vector>

#include "core/error.h"
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
                                 std::int64_t sequences, std::int64_t set) {
  LONGHAND_CHECK(set == 0 || (set >= task->heads() && set <= largest_training_set),
                 "training set: expected 0 or from ", task->heads(), " to ", largest_training_set,
                 " samples, got ", set);
  return [task = std::move(task), seed, sequences, set](std::int64_t step, std::int64_t part) {
    const int heads = task->heads();
    const int head = static_cast<int>((step - 1) % heads);
    std::vector<tasks::Sample> samples;
    for (std::int64_t i = 0; i < sequences; ++i) {
      const auto at = static_cast<std::uint64_t>(step);
      const auto index = static_cast<std::uint32_t>(part * sequences + i);
      if (set == 0) {
        Rng rng(seed, Purpose::data, at, index);
        samples.push_back(task->sample(rng, head));
      } else {
        const auto of_head = static_cast<std::uint32_t>((set - head + heads - 1) / heads);
        Rng draw(seed, Purpose::sampling, at, index);
        const auto j = static_cast<std::int64_t>(draw.below(of_head)) * heads + head;
        Rng rng(seed, Purpose::data, 0, static_cast<std::uint32_t>(j));
        samples.push_back(task->sample(rng, head));
      }
    }
    return batch_of(samples, *task);
  };
}

}  // namespace longhand::app
