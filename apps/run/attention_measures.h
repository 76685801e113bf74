#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/run/reference_scores.h"
#include "tasks/statistics.h"

/// How a model's attention, and its mistakes, compare with a task's reference attention
/// (AttentionSpan, sections 5 and 6; docs/guide/attention-measures.md).
namespace longhand::app {

/// Shannon's entropy of a head's rows in nats, their mean over all rows of all samples:
///   -sum_j A_ij ln A_ij
struct HeadEntropy {
  std::int64_t layer = 0, head = 0;
  double entropy = 0;
};

/// Mean, spread and range over heads.
struct EntropySummary {
  tasks::Moments heads = {};
  double least = 0, greatest = 0;
};

/// How often the answer's output number `place`, from 0, is wrong.
struct PlaceErrors {
  std::int64_t place = 0, count = 0, wrong = 0;
};

/// Samples whose tokens number from `shortest` to `longest`, of those that ask for something.
struct LengthScores {
  std::int64_t shortest = 0, longest = 0;
  std::int64_t samples = 0, exact = 0;  // exact: the whole answer is right
  std::int64_t asked = 0, right = 0;    // outputs
  tasks::Moments attention_score = {};
};

/// Under teacher forcing: the model sees the samples' own tokens. The attention score of a counted
/// row i (see ReferenceMask) is, with R the attention rollout,
///   sum_(j in reference of i) R_ij / sum_j R_ij
/// with j over the columns that count.
struct AttentionMeasures {
  std::int64_t samples = 0;
  std::vector<HeadScore> heads = {};        // the highest score first
  std::vector<HeadEntropy> entropies = {};  // by layer and head
  EntropySummary entropy = {};
  /// The paper's equation 2: of each sample the mean over its rows.
  tasks::Moments attention_score = {};
  /// Of rows whose token is predicted rightly, and of the others; the test of their means.
  tasks::Moments when_right = {}, when_wrong = {};
  std::optional<tasks::Welch> test = {};
  std::vector<PlaceErrors> places = {};
  std::vector<LengthScores> lengths = {};  // at most twenty, all of one width; those with samples
};

/// The attention rollout of one sequence, [tokens, tokens].
Tensor rollout_of(nn::Decoder& model, const nn::Input& sequence);

/// An Error where the task has no reference or a mixer shows no attention.
AttentionMeasures measure_attention(nn::Decoder& model, const tasks::Task& task,
                                    const EvaluationOptions& options);

}  // namespace longhand::app
