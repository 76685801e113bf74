#include <numbers>

#include "core/contract/attention.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/rules/stick_breaking.h"

namespace longhand::reference {
namespace {

constexpr double bits = 1 / std::numbers::ln2;  // for a score s, e^s = 2^(bits * s)

/// Replaces the scores s_ij of row i by the weights
///   P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)).
/// The row has the weight 1 to distribute. From the nearest key to the first, each key receives the
/// share sigmoid(s_ij) of the weight that is left.
void break_stick(std::span<double> row) {
  double left = 1;
  for (auto s = row.rbegin(); s != row.rend(); ++s) *s = rules::Stick::weigh(bits * *s, left);
}

}  // namespace

/// y_i = sum_(j<i) P_ij v_j. Nothing is saved: StickBreakingRule::residue, the rounding error of y,
/// is only for bf16, which the reference does not support.
void run(ReferenceBackend&, const Attention& op, const StickBreakingRule&) {
  attend(ScoreRows(op.scores, rules::Stick::own_key), op,
         [](const Query&, std::span<double> row) { break_stick(row); });
}

/// The gradient of the score s_ij: dS_ij = P_ij dP_ij - sigmoid(s_ij) sum_(m<=j) P_im dP_im
void run(ReferenceBackend&, const AttentionBackward& op, const StickBreakingGradient&) {
  attend_backward(ScoreRows(op.scores, rules::Stick::own_key), op,
                  [](const Query&, RowGradient& row) {
                    row.p = row.s;
                    break_stick(row.p);
                    double sum = 0;  // sum of P_im dP_im over the keys m <= j
                    for (std::size_t j = 0; j < row.p.size(); ++j) {
                      sum += row.p[j] * row.dp[j];
                      const double taken = rules::Stick::broken(bits * row.s[j]).taken;
                      row.ds.push_back(row.p[j] * row.dp[j] - taken * sum);
                    }
                  });
}

void run(ReferenceBackend&, const AttentionWeights& op, const StickBreakingRule&) {
  write_weights(ScoreRows(op.scores, rules::Stick::own_key), op,
                [](const Query&, std::span<double> row) { break_stick(row); });
}

}  // namespace longhand::reference
