#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/evaluation.h"
#include "tasks/statistics.h"

/// How much of a head's attention goes where the task's reference says (Task::reference).
namespace longhand::app {

/// Tokens that are looked at together where options do not say: all layers' queries and keys stay
/// in memory meanwhile.
inline constexpr std::int64_t tokens_looked_at = 4096;

/// A sample's reference as a matrix. Rows that have entries count; those of the matrix are all from
/// the first of these to the last.
struct ReferenceMask {
  std::int64_t first = 0, rows = 0;  // rows = 0: the sample has no reference
  std::int64_t first_column = 0;     // columns count from here: those before are an instruction
  std::vector<std::int32_t> counted = {};
  Tensor entries = {};  // [rows, tokens], 1 where the reference has an entry, else 0
};
ReferenceMask reference_mask(const tasks::Task& task, const tasks::Sample& sample, Backend& backend,
                             DType type);

/// The sums over the reference's columns of a matrix [rows, tokens], one for each counted row.
std::vector<double> reference_sums(const Tensor& matrix, const ReferenceMask& mask);

/// A head's attention on the reference, sum_(j in reference of i) A_ij, over the counted rows i of
/// all samples. Heads are counted over all kinds, in the order of the layer's list.
struct HeadScore {
  std::int64_t layer = 0, head = 0;
  tasks::Moments rows = {};

  double score() const { return rows.mean; }
  /// Over all rows (AttentionSpan, equation 3).
  double sum() const { return rows.mean * static_cast<double>(rows.count); }
};

/// Every head of the model, the highest score first; of equal ones the first. The model sees the
/// samples' own tokens. An Error where the task has no reference or a mixer shows no attention
/// (nn/mixing/head_weights.h).
std::vector<HeadScore> rank_heads(nn::Decoder& model, const tasks::Task& task,
                                  const EvaluationOptions& options);

/// All heads with nothing counted yet, in order; and the highest score first.
std::vector<HeadScore> heads_of(const nn::Decoder& model);
void sort_by_score(std::vector<HeadScore>& heads);

/// What one head of a mixer does in a sequence; an Error where the mixer shows no attention.
Tensor attention_of(const nn::Decoder& model, std::int64_t layer, const nn::Mixer& mixer,
                    const nn::MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head);

}  // namespace longhand::app
