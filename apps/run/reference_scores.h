#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/evaluation.h"
#include "tasks/statistics.h"

/// Measures a head's attention to the tokens of the task's reference (Task::reference).
namespace longhand::app {

/// Default number of tokens examined together; queries and keys of all layers stay in memory.
inline constexpr std::int64_t tokens_looked_at = 4096;

/// A sample's reference as a matrix. Rows with entries are counted. The matrix contains all rows
/// from the first to the last of these.
struct ReferenceMask {
  std::int64_t first = 0, rows = 0;  // rows = 0: the sample has no reference
  std::int64_t first_column = 0;     // first counted column; earlier ones are an instruction
  std::vector<std::int32_t> counted = {};
  Tensor entries = {};  // [rows, tokens], 1 if the reference has the entry, otherwise 0
};
ReferenceMask reference_mask(const tasks::Task& task, const tasks::Sample& sample, Backend& backend,
                             DType type);

/// The sums of a matrix [rows, tokens] over the reference's columns, one per counted row.
std::vector<double> reference_sums(const Tensor& matrix, const ReferenceMask& mask);

/// A head's attention on the reference, sum_(j in reference of i) A_ij, over the counted rows i of
/// all samples. Heads are numbered over all kinds, in the order of the layer's list.
struct HeadScore {
  std::int64_t layer = 0, head = 0;
  tasks::Moments rows = {};

  double score() const { return rows.mean; }
  /// Sum over all rows (AttentionSpan, equation 3).
  double sum() const { return rows.mean * static_cast<double>(rows.count); }
};

/// Every head of the model, sorted by score, highest first; equal ones in order. The model reads
/// the samples' own tokens. Throws an Error if the task has no reference or a mixer shows no
/// attention (nn/mixing/head_weights.h).
std::vector<HeadScore> rank_heads(nn::Decoder& model, const tasks::Task& task,
                                  const EvaluationOptions& options);

/// All heads in order, with empty scores; and sorted by score.
std::vector<HeadScore> heads_of(const nn::Decoder& model);
void sort_by_score(std::vector<HeadScore>& heads);

/// The weights of one head in a sequence. Throws an Error if the mixer shows none.
Tensor attention_of(const nn::Decoder& model, std::int64_t layer, const nn::Mixer& mixer,
                    const nn::MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head);

}  // namespace longhand::app
