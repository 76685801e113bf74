#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"
#include "core/npy.h"

/// A model's predictions per sample or per token, as arrays.
namespace longhand::app {

/// Collects the samples of one distribution (EvaluationOptions::told):
///   NAME.tokens, NAME.lengths         of each sample
///   NAME.asked, NAME.asked_lengths    the scored outputs (tasks/task.h)
///   NAME.said, NAME.wanted            predicted and right class at each of them
///   NAME.losses [samples]             mean over a sample's targets, under teacher forcing
///   NAME.scores.METRIC [samples]      NaN if a sample has none
///   NAME.logits [asked, classes]      if requested, under teacher forcing
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

/// A model's scores on tokens from outside.
struct TokenScores {
  tasks::Tally tally;               // loss, perplexity, tokens (share of right ones)
  std::vector<NamedTensor> arrays;  // tokens, lengths, targets, said, losses; logits if requested
};
/// If a batch has no targets, the next tokens are the targets. losses: per target, NaN if it is not
/// scored. The tally is weighted as the batches are.
TokenScores score_tokens(nn::Decoder& model, const tasks::Task& task,
                         std::vector<nn::Batch> batches, Backend& host, bool logits);

}  // namespace longhand::app
