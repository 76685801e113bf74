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

/// How a model's answers are read.
enum class Reading {
  forced,   // it sees the sample's own tokens (teacher forcing)
  decoded,  // it sees what it said before in place of what was asked
};
std::optional<Reading> reading_from_name(std::string_view name);  // forced, decoded

struct EvaluationOptions {
  std::int64_t samples = 200;
  /// About so many are read together; 0: 8192, in decoding what a cache of 256 MiB holds, at most
  /// 65536. There a batch costs a pass for each asked output, so the more sequences the better.
  std::int64_t tokens_at_once = 0;
  std::uint64_t seed = 1;
  Reading reading = Reading::forced;
  int head = 0;  // of the task's
  /// Told of each sample what was said at its asked outputs.
  std::function<void(std::span<const tasks::Sample> samples,
                     std::span<const std::vector<std::int32_t>> said)>
      told = {};
  /// Those that all have the model and call evaluate() together: each reads some of the samples,
  /// and all have the tally that one alone would have.
  nn::Communicator* ranks = &nn::alone();
};

/// The samples that models are scored on, some at a time: number i from the stream (seed,
/// evaluation, 0, i), so every model and every step sees the same ones. Where a task's samples are
/// numbered it is all of them in order, or, if fewer are wanted, some at even distances.
void for_samples(const tasks::Task& task, const EvaluationOptions& options,
                 const std::function<void(std::span<const tasks::Sample>)>& body);

/// Samples side by side as this model reads them: where its heads are reinforced, with the pairs of
/// the task's reference.
nn::Batch batch_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// The same in the backend's memory.
nn::Input input_for(const nn::Decoder& model, const tasks::Task& task,
                    std::span<const tasks::Sample> samples);
/// The first tokens of a sample, at most so many, by themselves.
nn::Input beginning_for(const nn::Decoder& model, const tasks::Task& task,
                        const tasks::Sample& sample, std::size_t most);

/// Scores a model on the samples of a task.
tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options);

/// The mean loss of the same samples' counted targets, in nats, all tokens seen as they are.
double evaluate_loss(nn::Decoder& model, const tasks::Task& task, const EvaluationOptions& options);

/// Losses of counted targets.
struct LossSum {
  double sum = 0, weight = 0;

  double mean() const { return weight > 0 ? sum / weight : 0; }
};
/// Those of each sample by itself.
std::vector<LossSum> evaluate_losses(nn::Decoder& model, const tasks::Task& task,
                                     const EvaluationOptions& options);

/// A share with its 95% interval as one prints it: "0.9375 [0.9120, 0.9560]"; another metric's
/// mean.
std::string text_of(const tasks::Metric& metric);

}  // namespace longhand::app
