#include "core/contract/chacal.h"

#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

/// ChaCAL, with the softmax weights P and the head's gamma g. U_j is what later rows read instead
/// of v_j:
///   y_i = sum_(j<i) P_ij U_j + (1 - g) P_ii v_i;  U_j = (1 - g) v_j + g y_j
void run(ReferenceBackend&, const Chacal& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), earlier(op.earlier);
  const HeadResult y(op.y);
  const Rows gamma(op.gamma);
  const Result log_denominators(op.log_denominator);
  const std::int64_t width = op.v.width;

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      const std::int64_t kv = h / scores.group();
      const double g = gamma(op.gamma.size() == 1 ? 0 : h);
      Matrix u(s.keys, width);
      const auto finish = [&](std::int64_t j, std::int64_t c, double y_j) {
        u(j, c) = (1 - g) * v(s.key + j, kv, c) + g * y_j;
      };
      for (std::int64_t j = 0; j < s.position(0); ++j) {
        for (std::int64_t c = 0; c < width; ++c) finish(j, c, earlier(s.key + j, h, c));
      }

      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.position(t);
        std::vector<double> p = scores.row(s, t, h);
        const double log_denominator = softmax(p, op.sink ? Rows(op.sink)(h) : no_sink);
        for (std::int64_t c = 0; c < width; ++c) {
          double sum = 0;
          for (std::int64_t j = 0; j < i; ++j) sum += p[j] * u(j, c);
          sum += p[i] * ((1 - g) * v(s.key + i, kv, c));
          y.put(s.query + t, h, c, sum);
          finish(i, c, sum);
        }
        log_denominators.put(s.query + t, h, log_denominator);
      }
    }
  }
}

/// The backward pass of ChaCAL, with the softmax weights P and the head's gamma g. The rows j are
/// processed from the last to the first:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j;
///   dv_j = (1 - g) A_j;  dg = sum_j (B_j . y_j - A_j . v_j);
///   dS_ij = P_ij (W_i . U_j - W_i . y_i),
/// where U_j = (1 - g) v_j + g y_j for j < i, and U_j = (1 - g) v_j for j = i.
void run(ReferenceBackend&, const ChacalBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), y(op.y), dy(op.dy);
  const Rows gamma(op.gamma), log_denominator(op.log_denominator), sink(op.sink);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const std::int64_t width = op.scores.q.width, v_width = op.v.width, group = scores.group();
  std::vector<double> dgamma(static_cast<std::size_t>(op.gamma.size()), 0.0);
  std::vector<double> dsink(static_cast<std::size_t>(op.sink ? op.scores.q.heads : 0), 0.0);
  ScoreGradients more(scores, op.scores, op.dscores);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    const std::int64_t n = s.keys;
    for (std::int64_t kv = 0; kv < op.v.heads; ++kv) {
      Matrix sum_dk(n, width), sum_dv(n, v_width);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        const std::int64_t number = op.gamma.size() == 1 ? 0 : h;
        const double g = gamma(number);
        const auto p = [&](std::int64_t i, std::int64_t j) {
          return std::exp(scores(s, i, h, j) - log_denominator(s.query + i, h));
        };

        Matrix w(n, v_width);
        for (std::int64_t j = n - 1; j >= 0; --j) {
          std::vector<double> b(static_cast<std::size_t>(v_width), 0.0);
          for (std::int64_t i = j + 1; i < n; ++i) {
            const double p_ij = p(i, j);
            for (std::int64_t c = 0; c < v_width; ++c) b[c] += p_ij * w(i, c);
          }
          const double p_jj = p(j, j);
          for (std::int64_t c = 0; c < v_width; ++c) {
            w(j, c) = dy(s.query + j, h, c) + g * b[c];
            const double a = b[c] + p_jj * w(j, c);
            sum_dv(j, c) += (1 - g) * a;
            dgamma[number] += b[c] * y(s.query + j, h, c) - a * v(s.key + j, kv, c);
          }
        }

        for (std::int64_t i = 0; i < n; ++i) {
          const double tau = scores.tau(s, i, h);
          double w_y = 0;
          for (std::int64_t c = 0; c < v_width; ++c) w_y += w(i, c) * y(s.query + i, h, c);
          if (op.sink) dsink[h] -= std::exp(sink(h) - log_denominator(s.query + i, h)) * w_y;
          std::vector<double> r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = 0; j <= i; ++j) {
            double dp = 0;
            for (std::int64_t c = 0; c < v_width; ++c) {
              const double past = j < i ? g * y(s.query + j, h, c) : 0;
              dp += w(i, c) * ((1 - g) * v(s.key + j, kv, c) + past);
            }
            const double ds = p(i, j) * (dp - w_y), scaled = op.scores.scale * ds;
            more.add(s, i, h, j, ds);
            for (std::int64_t c = 0; c < width; ++c) {
              r[c] += scaled * scores.k(s.key + j, kv, c);
              sum_dk(j, c) += scaled * tau * scores.q(s.query + i, h, c);
            }
          }
          for (std::int64_t c = 0; c < width; ++c) dq.put(s.query + i, h, c, tau * r[c]);
        }
      }
      sum_dk.put(dk, s.key, kv);
      sum_dv.put(dv, s.key, kv);
    }
  }
  more.put();
  put(op.dsink, dsink);
  put(op.dgamma, dgamma);
}

}  // namespace longhand::reference
