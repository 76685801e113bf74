#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/run/reference_scores.h"
#include "tasks/statistics.h"

/// Measures how a model's attention and its mistakes relate to a task's reference attention
/// (AttentionSpan, sections 5 and 6; docs/guide/attention-measures.md).
namespace longhand::app {

/// The Shannon entropy in nats of a head's attention weights, averaged over all tokens i of all
/// samples, where A_ij is the weight of token j for token i:
///   -sum_j A_ij ln A_ij
struct HeadEntropy {
  std::int64_t layer = 0, head = 0;
  double entropy = 0;
};

/// Statistics of HeadEntropy::entropy over all heads of a model.
struct EntropySummary {
  tasks::Moments heads = {};
  double least = 0, greatest = 0;
};

/// Counts the errors at one place of the answers. `place` is the index, counted from 0, of a scored
/// output among all scored outputs of its sample. `wrong` of `count` predictions at this place are
/// wrong.
struct PlaceErrors {
  std::int64_t place = 0, count = 0, wrong = 0;
};

/// Scores of the samples that have an answer and whose number of tokens is between `shortest` and
/// `longest`.
struct LengthScores {
  std::int64_t shortest = 0, longest = 0;
  // Number of samples, and number of samples whose whole answer is right.
  std::int64_t samples = 0, exact = 0;
  // Number of scored outputs, and number of right predictions.
  std::int64_t asked = 0, right = 0;
  tasks::Moments attention_score = {};
};

/// Measures of attention under teacher forcing: the model reads the samples' own tokens. If the
/// task's reference attention lists tokens to which token i should attend, token i has an attention
/// score:
///   (sum of R_ij over these tokens j) / (sum of R_ij over all tokens j after the instruction),
/// where R_ij is the share of token j in token i in the attention rollout (Rollout). The
/// instruction is the tokens that precede every prompt, if there are any.
struct AttentionMeasures {
  std::int64_t samples = 0;
  std::vector<HeadScore> heads = {};        // sorted by score, highest first
  std::vector<HeadEntropy> entropies = {};  // sorted by layer and head
  EntropySummary entropy = {};
  /// For each sample, the mean attention score of its tokens is computed (equation 2 of the
  /// AttentionSpan paper). These are the statistics of this mean over all samples.
  tasks::Moments attention_score = {};
  /// `when_right` contains the attention scores of tokens at which every prediction was right, and
  /// `when_wrong` those of all other tokens. `test` compares the means of these two sets.
  tasks::Moments when_right = {}, when_wrong = {};
  std::optional<tasks::Welch> test = {};
  std::vector<PlaceErrors> places = {};
  // Scores of samples of similar length. The range from the shortest to the longest sample is
  // divided into at most twenty intervals of equal width. Intervals without samples are omitted.
  std::vector<LengthScores> lengths = {};
};

/// The attention rollout of one sequence, [tokens, tokens].
Tensor rollout_of(nn::Decoder& model, const nn::Input& sequence);

/// Computes all measures. Throws an Error if the task has no reference attention or a mixer has no
/// attention weights.
AttentionMeasures measure_attention(nn::Decoder& model, const tasks::Task& task,
                                    const EvaluationOptions& options);

}  // namespace longhand::app
