#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/ranks/communicator.h"
#include "tasks/task.h"

namespace longhand::app {

/// The way in which a model's answers are obtained.
enum class Reading {
  forced,   // the model reads the sample's own tokens (teacher forcing)
  decoded,  // the model reads its own answers in place of the asked tokens
};
std::optional<Reading> reading_from_name(std::string_view name);  // parses "forced" or "decoded"

struct EvaluationOptions {
  std::int64_t samples = 200;
  /// About this many tokens are read together. 0 means 8192, and in decoding as many as fit in a
  /// cache of 256 MiB, at most 65536. In decoding a batch needs one pass per asked output, so many
  /// sequences are efficient.
  std::int64_t tokens_at_once = 0;
  std::uint64_t seed = 1;
  Reading reading = Reading::forced;
  int head = 0;  // output head of the task
  /// Called with samples and the predictions at their asked outputs.
  std::function<void(std::span<const tasks::Sample> samples,
                     std::span<const std::vector<std::int32_t>> said)>
      told = {};
  /// Ranks that all have the model and call evaluate() together. Each reads some of the samples,
  /// and all get the tally of a single rank.
  nn::Communicator* ranks = &nn::alone();
};

/// Visits the samples for scoring, some at a time. Sample i is drawn from the stream (seed,
/// evaluation, 0, i), so every model and step sees the same samples. If a task's samples are
/// numbered, these are all of them in order, or evenly spaced ones if fewer are wanted.
void for_samples(const tasks::Task& task, const EvaluationOptions& options,
                 const std::function<void(std::span<const tasks::Sample>)>& body);

/// Joins samples to a batch for this model; with reinforced heads, including the reference pairs.
nn::Batch batch_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// The same in the backend's memory.
nn::Input input_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// The first tokens of a sample, at most `most`, as an input.
nn::Input beginning_for(const nn::Decoder& model, const tasks::Task& task,
                        const tasks::Sample& sample, std::size_t most);

/// Scores a model on the samples of a task.
tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options);

/// The mean loss of the same samples' scored targets, in nats, under teacher forcing.
double evaluate_loss(nn::Decoder& model, const tasks::Task& task, const EvaluationOptions& options);

/// Sum of losses of scored targets.
struct LossSum {
  double sum = 0, weight = 0;

  double mean() const { return weight > 0 ? sum / weight : 0; }
};
/// The losses of each sample separately.
std::vector<LossSum> evaluate_losses(nn::Decoder& model, const tasks::Task& task,
                                     const EvaluationOptions& options);

/// A share with its 95% interval, "0.9375 [0.9120, 0.9560]", or the mean of another metric.
std::string text_of(const tasks::Metric& metric);

}  // namespace longhand::app
