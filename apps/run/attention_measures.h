#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/run/reference_scores.h"
#include "tasks/statistics.h"

/// Compares a model's attention and mistakes with a task's reference attention (AttentionSpan,
/// sections 5 and 6; docs/guide/attention-measures.md).
namespace longhand::app {

/// Shannon entropy of a head's rows in nats, averaged over all rows of all samples:
///   -sum_j A_ij ln A_ij
struct HeadEntropy {
  std::int64_t layer = 0, head = 0;
  double entropy = 0;
};

/// Mean, standard deviation and range over heads.
struct EntropySummary {
  tasks::Moments heads = {};
  double least = 0, greatest = 0;
};

/// The wrong answers at output number `place` of the answer, counted from 0.
struct PlaceErrors {
  std::int64_t place = 0, count = 0, wrong = 0;
};

/// Samples with `shortest` to `longest` tokens that have an answer.
struct LengthScores {
  std::int64_t shortest = 0, longest = 0;
  std::int64_t samples = 0, exact = 0;  // exact: completely right answers
  std::int64_t asked = 0, right = 0;    // numbers of outputs
  tasks::Moments attention_score = {};
};

/// Measured under teacher forcing: the model reads the samples' own tokens. With R the attention
/// rollout, the attention score of a counted row i (see ReferenceMask) is
///   sum_(j in reference of i) R_ij / sum_j R_ij
/// where j runs over the counted columns.
struct AttentionMeasures {
  std::int64_t samples = 0;
  std::vector<HeadScore> heads = {};        // sorted by score, highest first
  std::vector<HeadEntropy> entropies = {};  // sorted by layer and head
  EntropySummary entropy = {};
  /// Equation 2 of the paper: for each sample, the mean over its rows.
  tasks::Moments attention_score = {};
  /// Scores of rows whose token was predicted correctly, and of the others; the test of their
  /// means.
  tasks::Moments when_right = {}, when_wrong = {};
  std::optional<tasks::Welch> test = {};
  std::vector<PlaceErrors> places = {};
  // at most twenty classes of equal width, without empty ones
  std::vector<LengthScores> lengths = {};
};

/// The attention rollout of one sequence, [tokens, tokens].
Tensor rollout_of(nn::Decoder& model, const nn::Input& sequence);

/// Throws an Error if the task has no reference or a mixer shows no attention.
AttentionMeasures measure_attention(nn::Decoder& model, const tasks::Task& task,
                                    const EvaluationOptions& options);

}  // namespace longhand::app
