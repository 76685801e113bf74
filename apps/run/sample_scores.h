#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"
#include "core/npy.h"

/// Stores a model's predictions per sample or per token as arrays.
namespace longhand::app {

/// Collects the scores of the samples of distribution NAME as arrays (EvaluationOptions::told):
///   NAME.tokens, NAME.lengths         all samples' tokens, and how many each sample has
///   NAME.asked, NAME.asked_lengths    the scored outputs (tasks/task.h)
///   NAME.said, NAME.wanted            predicted and right class at each scored output
///   NAME.losses [samples]             mean loss over a sample's targets, under teacher forcing
///   NAME.scores.METRIC [samples]      NaN for a sample to which the metric does not apply
///   NAME.logits [asked, classes]      if requested; under teacher forcing
class SampleScores {
 public:
  SampleScores(nn::Decoder& model, const tasks::Task& task, std::string name, bool logits)
      : model_(model), task_(task), name_(std::move(name)), wants_logits_(logits) {}

  void add(std::span<const tasks::Sample> samples, std::span<const std::vector<std::int32_t>> said);
  std::vector<NamedTensor> arrays(Backend& host) const;

 private:
  void add_logits(std::span<const tasks::Sample> samples);

  nn::Decoder& model_;
  const tasks::Task& task_;
  std::string name_;
  bool wants_logits_;
  std::vector<std::vector<std::int32_t>> tokens_, asked_, said_, wanted_;
  std::vector<double> losses_, logits_;
  std::map<std::string, std::vector<double>> scores_;
};

/// A model's scores on tokens read from a file.
struct TokenScores {
  tasks::Tally tally;  // loss, perplexity, tokens (share of right predictions)
  /// The arrays tokens, lengths, targets, said (predicted classes) and losses, and, if requested,
  /// logits.
  std::vector<NamedTensor> arrays;
};
/// Scores tokens from a file. If a batch has no targets, the target of each token is the next
/// token. There is one loss per target, which is NaN if the target is not scored. The tally's mean
/// loss is weighted by Batch::weights.
TokenScores score_tokens(nn::Decoder& model, const tasks::Task& task,
                         std::vector<nn::Batch> batches, Backend& host, bool logits);

}  // namespace longhand::app
