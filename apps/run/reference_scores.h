#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/evaluation.h"
#include "tasks/statistics.h"

/// Measures how much attention a head pays to the tokens of the task's reference (Task::reference).
namespace longhand::app {

/// Default number of tokens that are processed together. The queries and keys of all layers for
/// these tokens stay in memory.
inline constexpr std::int64_t tokens_looked_at = 4096;

/// The reference attention of a sample as a matrix. Its rows [first, first + rows) are those from
/// the first token that has a reference to the last one. `counted` lists the indices of the tokens
/// that have a reference.
struct ReferenceMask {
  std::int64_t first = 0, rows = 0;  // rows: 0 if the sample has no reference
  /// Index of the first token after the task's instruction. Attention to the instruction does not
  /// count.
  std::int64_t first_column = 0;
  std::vector<std::int32_t> counted = {};
  Tensor entries = {};  // [rows, tokens]: 1 where the reference has an entry, otherwise 0
};
ReferenceMask reference_mask(const tasks::Task& task, const tasks::Sample& sample, Backend& backend,
                             DType type);

/// For each token that has a reference: the sum of the entries in the token's row of `matrix` that
/// belong to reference tokens. `matrix` has the rows of the mask, [rows, tokens].
std::vector<double> reference_sums(const Tensor& matrix, const ReferenceMask& mask);

/// A head's attention to the reference. For each token that has a reference, the token's attention
/// weights for its reference tokens are added up. `rows` contains statistics of these sums over all
/// samples. `head` is the index of the head among all heads of the layer, in the order of the
/// layer's list.
struct HeadScore {
  std::int64_t layer = 0, head = 0;
  tasks::Moments rows = {};

  double score() const { return rows.mean; }
  /// The head's attention to the reference, summed over all counted rows (AttentionSpan, equation
  /// 3).
  double sum() const { return rows.mean * static_cast<double>(rows.count); }
};

/// The scores of all heads, from highest to lowest. Heads with equal scores stay in order. Uses
/// teacher forcing. Throws an Error if the task has no reference attention or a mixer has no
/// attention weights (nn/mixer_core/head_weights.h).
std::vector<HeadScore> rank_heads(nn::Decoder& model, const tasks::Task& task,
                                  const EvaluationOptions& options);

/// All heads of a model in order, with empty scores.
std::vector<HeadScore> heads_of(const nn::Decoder& model);
void sort_by_score(std::vector<HeadScore>& heads);

/// The attention weights of one head in a sequence. Throws an Error if the mixer has no attention
/// weights.
Tensor attention_of(const nn::Decoder& model, std::int64_t layer, const nn::Mixer& mixer,
                    const nn::MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head);

}  // namespace longhand::app
