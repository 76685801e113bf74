#include <cmath>
#include <numbers>

#include "core/contract/attention.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/rules/sigmoid.h"

namespace longhand::reference {
namespace {

/// Replaces the scores s_ij of the n_i keys that query i sees by the weights
///   P_ij = sigmoid(s_ij - ln n_i)
void weigh_apart(std::span<double> row) {
  const double log_count = std::log(static_cast<double>(row.size()));
  for (double& s : row) s = rules::Sigmoid::weight((s - log_count) / std::numbers::ln2);
}

}  // namespace

/// y_i = sum_j P_ij v_j
void run(ReferenceBackend&, const Attention& op, const SigmoidRule&) {
  attend(ScoreRows(op.scores), op, [](const Query&, std::span<double> row) { weigh_apart(row); });
}

/// dS_ij = P_ij (1 - P_ij) dP_ij
void run(ReferenceBackend&, const AttentionBackward& op, const SigmoidGradient&) {
  attend_backward(ScoreRows(op.scores), op, [](const Query&, RowGradient& row) {
    row.p = row.s;
    weigh_apart(row.p);
    for (std::size_t j = 0; j < row.p.size(); ++j) {
      row.ds.push_back(rules::Sigmoid::gradient(row.p[j], row.dp[j]));
    }
  });
}

void run(ReferenceBackend&, const AttentionWeights& op, const SigmoidRule&) {
  write_weights(ScoreRows(op.scores), op,
                [](const Query&, std::span<double> row) { weigh_apart(row); });
}

}  // namespace longhand::reference
