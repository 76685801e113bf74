#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/ranks/communicator.h"
#include "tasks/task.h"

namespace longhand::app {

/// The tokens that a model reads when its predictions are evaluated.
enum class Reading {
  forced,   // teacher forcing: the model reads the sample's own tokens
  decoded,  // the model reads its own predictions in place of the answer's tokens
};
std::optional<Reading> reading_from_name(std::string_view name);  // parses "forced" or "decoded"

struct EvaluationOptions {
  std::int64_t samples = 200;
  /// Approximate number of tokens that are read together. 0 selects 8192. For decoding, 0 selects
  /// as many as fit in a cache of 256 MiB, but at most 65536. Decoding computes one forward pass
  /// per scored output for the whole batch, so large batches are efficient.
  std::int64_t tokens_at_once = 0;
  std::uint64_t seed = 1;
  Reading reading = Reading::forced;
  int head = 0;  // index of the task's output head
  /// Called for each group of samples that were read together, with the predictions at their scored
  /// outputs.
  std::function<void(std::span<const tasks::Sample> samples,
                     std::span<const std::vector<std::int32_t>> said)>
      told = {};
  /// Ranks that all have the model and call evaluate() together. Each rank reads some of the
  /// samples. All ranks return the tally that a single rank would return.
  nn::Communicator* ranks = &nn::single_rank();
};

/// Calls `body` with the test samples, several at a time. Sample i is drawn from the random stream
/// (seed, evaluation, 0, i), so every model is scored on the same samples at every step. If a
/// task has a fixed list of samples, all of them are read in order. If fewer samples are requested,
/// evenly spaced samples of the list are read.
void for_samples(const tasks::Task& task, const EvaluationOptions& options,
                 const std::function<void(std::span<const tasks::Sample>)>& body);

/// Joins samples to a batch for this model. If the model has reinforced heads, the batch also
/// contains the task's reference attention, as pairs (token, token that it should attend to).
/// Reinforced heads increase the attention weights of these pairs.
nn::Batch batch_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// Like batch_for(), but the batch is in the backend's memory.
nn::Input input_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// The first `most` tokens of a sample as an input of the model.
nn::Input beginning_for(const nn::Decoder& model, const tasks::Task& task,
                        const tasks::Sample& sample, std::size_t most);

/// Scores a model on samples of the task.
tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options);

/// The names of the metrics that evaluate() returns for the same task and options.
std::vector<std::string> metric_names(const tasks::Task& task, const EvaluationOptions& options);

/// The mean loss in nats of the scored targets, under teacher forcing, on the samples that
/// evaluate() would use.
double evaluate_loss(nn::Decoder& model, const tasks::Task& task, const EvaluationOptions& options);

/// The weighted sum of the losses of scored targets, and the sum of their weights.
struct LossSum {
  double sum = 0, weight = 0;

  double mean() const { return weight > 0 ? sum / weight : 0; }
};
/// The summed loss of each sample, under teacher forcing, on the samples that evaluate() would use.
std::vector<LossSum> evaluate_losses(nn::Decoder& model, const tasks::Task& task,
                                     const EvaluationOptions& options);

/// The value of a metric as text. A share is shown with its 95% interval, such as "0.9375 [0.9120,
/// 0.9560]", other metrics without an interval.
std::string text_of(const tasks::Metric& metric);

}  // namespace longhand::app
