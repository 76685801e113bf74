#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/run/reference_scores.h"
#include "tasks/statistics.h"

/// Measures how a model's attention and its mistakes relate to a task's reference attention
/// (AttentionSpan, sections 5 and 6; docs/guide/attention-measures.md).
namespace longhand::app {

/// The Shannon entropy in nats of a head's rows A_i, averaged over all rows of all samples:
///   -sum_j A_ij ln A_ij
struct HeadEntropy {
  std::int64_t layer = 0, head = 0;
  double entropy = 0;
};

/// Statistics of the entropies over heads.
struct EntropySummary {
  tasks::Moments heads = {};
  double least = 0, greatest = 0;
};

/// Errors at one place of the answers: index `place`, counted from 0, among an answer's outputs.
/// `wrong` of `count` predictions at this place are wrong.
struct PlaceErrors {
  std::int64_t place = 0, count = 0, wrong = 0;
};

/// Scores of the samples that have an answer and whose number of tokens is between `shortest` and
/// `longest`.
struct LengthScores {
  std::int64_t shortest = 0, longest = 0;
  std::int64_t samples = 0, exact = 0;  // exact: samples whose whole answer is right
  std::int64_t asked = 0, right = 0;    // numbers of scored outputs and of right predictions
  tasks::Moments attention_score = {};
};

/// The measures use teacher forcing: the model reads the samples' own tokens. Let R be the
/// attention rollout. The attention score of a counted row i (see ReferenceMask) is
///   sum_(j in reference of i) R_ij / sum_j R_ij
/// where j runs over the counted columns.
struct AttentionMeasures {
  std::int64_t samples = 0;
  std::vector<HeadScore> heads = {};        // sorted by score, highest first
  std::vector<HeadEntropy> entropies = {};  // sorted by layer and head
  EntropySummary entropy = {};
  /// Equation 2 of the paper: the mean score of a sample's rows, as statistics over samples.
  tasks::Moments attention_score = {};
  /// Scores of rows whose token was predicted correctly, and scores of all other rows. `test`
  /// compares the means of the two.
  tasks::Moments when_right = {}, when_wrong = {};
  std::optional<tasks::Welch> test = {};
  std::vector<PlaceErrors> places = {};
  // There are at most twenty classes of length, with equal widths. Empty classes are omitted.
  std::vector<LengthScores> lengths = {};
};

/// The attention rollout of one sequence, [tokens, tokens].
Tensor rollout_of(nn::Decoder& model, const nn::Input& sequence);

/// Computes all measures. Throws an Error if the task has no reference attention or a mixer has no
/// attention weights.
AttentionMeasures measure_attention(nn::Decoder& model, const tasks::Task& task,
                                    const EvaluationOptions& options);

}  // namespace longhand::app
