#include <cmath>

#include "core/contract/attention.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

double sink_of(const Tensor& sink, std::int64_t h) { return sink ? Rows(sink)(h) : no_sink; }

}  // namespace

/// Softmax attention, with scale, tau (Scores::multiplier), the shifts c (Scores::decay), and the
/// head's sink b, a score without a value:
///   s_ij = tau_i scale q_i . k_j + c_i - c_j;
///   P_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(b));  y_i = sum_j P_ij v_j
void run(ReferenceBackend&, const Attention& op, const SoftmaxRule& rule) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v);
  const HeadResult y(op.y);
  const Result log_denominators(rule.log_denominator);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      const std::int64_t kv = h / scores.group();
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.query + t, first = scores.first(s, t), end = scores.end(s, t);
        const double b = sink_of(rule.sink, h);
        std::vector<double> p;
        double top = b;  // subtracted from every score, so that no exponential overflows
        for (std::int64_t j = first; j < end; ++j) {
          p.push_back(scores(s, t, h, j));
          // A score that is NaN becomes `top`, so that y is NaN too.
          if (p.back() > top || std::isnan(p.back())) top = p.back();
        }
        double denominator = std::exp(b - top);
        for (double& x : p) denominator += x = std::exp(x - top);
        for (double& x : p) x /= denominator;

        for (std::int64_t c = 0; c < op.v.width; ++c) {
          double sum = 0;
          for (std::int64_t j = first; j < end; ++j) sum += p[j - first] * v(s.key + j, kv, c);
          y.put(i, h, c, sum);
        }
        log_denominators.put(i, h, top + std::log(denominator));
      }
    }
  }
}

/// The backward pass of softmax attention, with scale, tau (Scores::multiplier) and the head's sink
/// b, a score without a value:
///   dP_ij = dy_i . v_j;  D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);
///   dq_i = tau_i scale sum_j dS_ij k_j;  dk_j = scale sum_i tau_i dS_ij q_i;
///   dv_j = sum_i P_ij dy_i;  db = -sum_i exp(b - log_denominator_i) D_i.
/// P and the denominators are computed from the scores. The saved log_denominator is not read, so
/// its rounding error has no effect. The saved y is read, so its rounding error changes D_i.
void run(ReferenceBackend&, const AttentionBackward& op, const SoftmaxGradient& rule) {
  const ScoreRows scores(op.scores);
  const HeadRows y(rule.y), dy(op.dy);
  std::vector<double> dsink(static_cast<std::size_t>(rule.sink ? op.scores.q.heads : 0), 0.0);
  attend_backward(scores, op, [&](const Query& query, RowGradient& row) {
    const double b = sink_of(rule.sink, query.head);
    row.p = row.s;
    const double log_denominator = softmax(row.p, b);
    const double d = dot(dy, query.row(), query.head, y, query.row(), query.head, op.v.width);
    for (std::size_t j = 0; j < row.p.size(); ++j) row.ds.push_back(row.p[j] * (row.dp[j] - d));
    if (rule.sink) dsink[query.head] -= std::exp(b - log_denominator) * d;
  });
  put(rule.dsink, dsink);
}

void run(ReferenceBackend&, const AttentionWeights& op, const SoftmaxRule& rule) {
  write_weights(ScoreRows(op.scores), op, [&](const Query& query, std::span<double> row) {
    softmax(row, sink_of(rule.sink, query.head));
  });
}

}  // namespace longhand::reference
