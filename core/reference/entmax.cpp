#include <algorithm>
#include <cmath>

#include "core/contract/attention.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/rules/entmax.h"

namespace longhand::reference {
namespace {

/// Replaces the scores s_ij of row i by the weights P_ij = max(s_ij / 2 - t_i, 0)^2, where the
/// threshold t_i is such that the weights sum to 1. Returns t_i.
double weigh_sparsely(std::span<double> row) {
  for (double& s : row) s /= 2;
  const double t = rules::Entmax::threshold(row.data(), std::ssize(row));
  for (double& s : row) s = std::pow(rules::Entmax::weight(s, t), 2);
  const auto has = [](double p) { return p > 0; };
  if (std::ranges::count_if(row, has) == 1) *std::ranges::find_if(row, has) = 1;
  return t;
}

}  // namespace

/// Entmax attention, where w_ij is the square root of the weight P_ij:
///   y_i = sum_j P_ij v_j;  root_mean_i = sum_j w_ij v_j / sum_j w_ij
void run(ReferenceBackend&, const Attention& op, const EntmaxRule& rule) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v);
  const HeadResult root_mean(rule.root_mean);
  const Result thresholds(rule.threshold);
  attend(scores, op, [&](const Query& query, std::span<double> row) {
    thresholds.put(query.row(), query.head, weigh_sparsely(row));
    if (!rule.root_mean) return;
    for (std::int64_t c = 0; c < op.v.width; ++c) {
      double roots = 0, weighted = 0;
      for (std::int64_t j = query.first; j < query.end; ++j) {
        const double w = std::sqrt(row[j - query.first]);
        roots += w;
        weighted += w * v(query.s.key + j, query.head / scores.group(), c);
      }
      root_mean.put(query.row(), query.head, c, weighted / roots);
    }
  });
}

/// The backward pass of entmax. w_ij is the square root of the weight P_ij, and root_mean_i is the
/// mean of the values v_j, weighted by w_ij:
///   D_i = dy_i . root_mean_i;  dS_ij = w_ij (dP_ij - D_i)
void run(ReferenceBackend&, const AttentionBackward& op, const EntmaxGradient& rule) {
  const HeadRows root_mean(rule.root_mean), dy(op.dy);
  attend_backward(ScoreRows(op.scores), op, [&](const Query& query, RowGradient& row) {
    row.p = row.s;
    weigh_sparsely(row.p);
    const double d =
        dot(dy, query.row(), query.head, root_mean, query.row(), query.head, op.v.width);
    for (std::size_t j = 0; j < row.p.size(); ++j) {
      row.ds.push_back(std::sqrt(row.p[j]) * (row.dp[j] - d));
    }
  });
}

void run(ReferenceBackend&, const AttentionWeights& op, const EntmaxRule&) {
  write_weights(ScoreRows(op.scores), op,
                [](const Query&, std::span<double> row) { weigh_sparsely(row); });
}

}  // namespace longhand::reference
