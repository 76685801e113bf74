#include "core/contract/chacal.h"

#include <cmath>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/reference/weights_row.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Chacal& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), earlier(op.earlier);
  const HeadResult y(op.y);
  const Rows gamma(op.gamma);
  const Result log_sums(op.log_sum);
  const std::int64_t width = op.v.width;

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      const std::int64_t kv = h / scores.group();
      const double g = gamma(op.gamma.size() == 1 ? 0 : h);

      // u_j = (1 - g) v_j + g y_j of the positions that are done
      std::vector<double> u(static_cast<std::size_t>(s.keys * width));
      const auto finish = [&](std::int64_t j, std::int64_t c, double y_j) {
        u[j * width + c] = (1 - g) * v(s.key + j, kv, c) + g * y_j;
      };
      for (std::int64_t j = 0; j < s.position(0); ++j) {
        for (std::int64_t c = 0; c < width; ++c) finish(j, c, earlier(s.key + j, h, c));
      }

      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.position(t);
        double log_sum = 0;
        const std::vector<double> p = weights_row(scores, s, t, h, log_sum);
        for (std::int64_t c = 0; c < width; ++c) {
          double sum = 0;
          for (std::int64_t j = 0; j < i; ++j) sum += p[j] * u[j * width + c];
          sum += p[i] * ((1 - g) * v(s.key + i, kv, c));
          y.put(s.query + t, h, c, sum);
          finish(i, c, sum);
        }
        log_sums.put(s.query + t, h, log_sum);
      }
    }
  }
}

void run(ReferenceBackend&, const ChacalBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), y(op.y), dy(op.dy);
  const Rows gamma(op.gamma), log_sum(op.log_sum);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const std::int64_t width = op.scores.q.width, v_width = op.v.width;
  std::vector<double> dgamma(static_cast<std::size_t>(op.gamma.size()), 0.0);
  ScoreGradients more(op.scores, op.dscores);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    const std::int64_t n = s.keys;
    for (std::int64_t kv = 0; kv < op.v.heads; ++kv) {
      std::vector<double> sum_dk(static_cast<std::size_t>(n * width), 0.0);
      std::vector<double> sum_dv(static_cast<std::size_t>(n * v_width), 0.0);
      for (std::int64_t h = kv * scores.group(); h < (kv + 1) * scores.group(); ++h) {
        const std::size_t which = op.gamma.size() == 1 ? 0 : static_cast<std::size_t>(h);
        const double g = gamma(static_cast<std::int64_t>(which));
        const auto p = [&](std::int64_t i, std::int64_t j) {
          return std::exp(scores(s, i, h, j) - log_sum(s.query + i, h));
        };

        // Rows of W from the last to the first; A_j and B_j fall off on the way.
        std::vector<double> w(static_cast<std::size_t>(n * v_width), 0.0);
        for (std::int64_t j = n - 1; j >= 0; --j) {
          std::vector<double> b(static_cast<std::size_t>(v_width), 0.0);
          for (std::int64_t i = j + 1; i < n; ++i) {
            const double p_ij = p(i, j);
            for (std::int64_t c = 0; c < v_width; ++c) b[c] += p_ij * w[i * v_width + c];
          }
          const double p_jj = p(j, j);
          for (std::int64_t c = 0; c < v_width; ++c) {
            w[j * v_width + c] = dy(s.query + j, h, c) + g * b[c];
            const double a = b[c] + p_jj * w[j * v_width + c];
            sum_dv[j * v_width + c] += (1 - g) * a;
            dgamma[which] += b[c] * y(s.query + j, h, c) - a * v(s.key + j, kv, c);
          }
        }

        for (std::int64_t i = 0; i < n; ++i) {
          const double tau = scores.tau(s, i, h);
          double w_y = 0;
          for (std::int64_t c = 0; c < v_width; ++c) {
            w_y += w[i * v_width + c] * y(s.query + i, h, c);
          }
          more.add_sink(h, std::exp(scores.sink(h) - log_sum(s.query + i, h)), w_y);
          std::vector<double> r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = 0; j <= i; ++j) {
            double dp = 0;
            for (std::int64_t c = 0; c < v_width; ++c) {
              const double u =
                  (1 - g) * v(s.key + j, kv, c) + (j < i ? g * y(s.query + j, h, c) : 0);
              dp += w[i * v_width + c] * u;
            }
            const double ds = p(i, j) * (dp - w_y), scaled = op.scores.scale * ds;
            more.add(s, i, h, j, ds, scores.raw(s, i, h, j));
            for (std::int64_t c = 0; c < width; ++c) {
              r[c] += scaled * scores.k(s.key + j, kv, c);
              sum_dk[j * width + c] += scaled * tau * scores.q(s.query + i, h, c);
            }
          }
          for (std::int64_t c = 0; c < width; ++c) dq.put(s.query + i, h, c, tau * r[c]);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t c = 0; c < width; ++c) dk.put(s.key + j, kv, c, sum_dk[j * width + c]);
        for (std::int64_t c = 0; c < v_width; ++c) {
          dv.put(s.key + j, kv, c, sum_dv[j * v_width + c]);
        }
      }
    }
  }
  more.put();
  for (std::size_t i = 0; i < dgamma.size(); ++i) {
    Result(op.dgamma).put(static_cast<std::int64_t>(i), dgamma[i]);
  }
}

}  // namespace longhand::reference
