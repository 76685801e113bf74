#include <algorithm>

#include "core/contract/attention.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/rules/tra.h"

namespace longhand::reference {
namespace {

/// Replaces the scores s_ij of row i by weights: the softmax of s_ij + a n_ij over the keys with
/// positive scores. `a` is the row's TraRule::count_bias, and n_ij is the number of keys with
/// positive scores at the positions j .. i. Returns the logarithm of the denominator. If no score
/// is positive, all weights and the returned value are 0.
double weigh_positive(std::span<double> row, double a) {
  double count = 0;
  for (auto s = row.rbegin(); s != row.rend(); ++s) *s = rules::Tra::logit(*s, a, count);
  if (count > 0) return softmax(row);
  std::ranges::fill(row, 0.0);
  return 0;
}

}  // namespace

/// y_i = sum_j P_ij v_j
void run(ReferenceBackend&, const Attention& op, const TraRule& rule) {
  const Rows a(rule.count_bias);
  const Result log_denominators(rule.log_denominator);
  attend(ScoreRows(op.scores), op, [&](const Query& query, std::span<double> row) {
    const double log_denominator = weigh_positive(row, a(query.row(), query.head));
    log_denominators.put(query.row(), query.head, log_denominator);
  });
}

/// D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);  da_i = sum_j dS_ij n_ij, where a_i is
/// TraRule::count_bias, and n_ij is the number of positive scores at the positions j .. i
void run(ReferenceBackend&, const AttentionBackward& op, const TraGradient& rule) {
  const Rows a(rule.count_bias);
  const HeadRows y(rule.y), dy(op.dy);
  const Result da(rule.dcount_bias);
  attend_backward(ScoreRows(op.scores), op, [&](const Query& query, RowGradient& row) {
    row.p = row.s;
    weigh_positive(row.p, a(query.row(), query.head));
    const double d = dot(dy, query.row(), query.head, y, query.row(), query.head, op.v.width);
    double n = 0, sum = 0;
    for (std::size_t j = 0; j < row.p.size(); ++j) row.ds.push_back(row.p[j] * (row.dp[j] - d));
    for (std::size_t j = row.p.size(); j-- > 0;) {
      n += row.s[j] > 0 ? 1 : 0;
      sum += row.ds[j] * n;
    }
    da.put(query.row(), query.head, sum);
  });
}

void run(ReferenceBackend&, const AttentionWeights& op, const TraRule& rule) {
  const Rows a(rule.count_bias);
  write_weights(ScoreRows(op.scores), op, [&](const Query& query, std::span<double> row) {
    weigh_positive(row, a(query.row(), query.head));
  });
}

}  // namespace longhand::reference
