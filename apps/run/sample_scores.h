#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"
#include "core/npy.h"

/// What a model said, sample by sample or token by token, as arrays.
namespace longhand::app {

/// Gathers the samples of one distribution (EvaluationOptions::told):
///   NAME.tokens, NAME.lengths         of each sample
///   NAME.asked, NAME.asked_lengths    the outputs that are scored (tasks/task.h)
///   NAME.said, NAME.wanted            at each of them, as classes
///   NAME.losses [samples]             mean over a sample's targets, all tokens seen as they are
///   NAME.scores.METRIC [samples]      NaN where a sample has none
///   NAME.logits [asked, classes]      where wanted, all tokens seen as they are
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

/// What a model says of tokens from outside.
struct TokenScores {
  tasks::Tally tally;               // loss, perplexity, tokens (the share that is right)
  std::vector<NamedTensor> arrays;  // tokens, lengths, targets, said, losses; logits where wanted
};
/// Where a batch has no targets they are the next tokens. losses: of each target, NaN where it is
/// not counted; the tally's are weighted as the batches say.
TokenScores score_tokens(nn::Decoder& model, const tasks::Task& task,
                         std::vector<nn::Batch> batches, Backend& host, bool logits);

}  // namespace longhand::app
