#include "core/contract/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/reference/weights_row.h"

namespace longhand::reference {
namespace {

using Doubles = std::vector<double>;

/// S_ij of a query for the keys before its own, and the log of their sum; 0 if there are none.
Doubles strict_softmax(const ScoreRows& scores, const Sequence& s, std::int64_t t, std::int64_t h,
                       double& log_sum) {
  Doubles p;
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t j = 0; j < s.position(t); ++j) {
    p.push_back(scores(s, t, h, j));
    highest = std::max(highest, p.back());
  }
  for (double& x : p) sum += x = std::exp(x - highest);
  for (double& x : p) x /= sum;
  log_sum = p.empty() ? 0 : highest + std::log(sum);
  return p;
}

/// The gain for a query's row and head.
class Gains {
 public:
  Gains(ChainOf of, const Tensor& gain, std::int64_t heads)
      : of_(of), gain_(gain), size_(gain.size()), heads_(heads) {}
  std::int64_t entry(std::int64_t row, std::int64_t h) const {
    if (of_ == ChainOf::values) return row * heads_ + h;
    return size_ == 1 ? 0 : h;
  }
  double operator()(std::int64_t row, std::int64_t h) const { return gain_(entry(row, h)); }

 private:
  ChainOf of_;
  Rows gain_;
  std::int64_t size_, heads_;
};

/// The backward pass of one head of one sequence, up to dS.
struct Back {
  const ChainBackward& op;
  const ScoreRows& scores;
  const Sequence& s;
  std::int64_t h, kv = h / scores.group(), n = s.keys, width = op.v.width;
  HeadRows v{op.v}, y{op.y}, dy{op.dy}, z{op.read};
  Rows log_sum{op.log_sum};
  Gains gain{op.of, op.gain, op.y.heads};
  Doubles w = Doubles(static_cast<std::size_t>(n * width), 0.0);  // W_i; for values, times g_i
  Doubles d = Doubles(static_cast<std::size_t>(n), 0.0);          // the row sums of P_ij dP_ij

  double p(std::int64_t i, std::int64_t j) const {
    return std::exp(scores(s, i, h, j) - log_sum(s.query + i, h));
  }

  /// Solves from the last row to the first, and computes A_j and B_j on the way.
  void solve_attention(Doubles& dv, double& dgamma) {
    const double g = gain(0, h);
    for (std::int64_t j = n - 1; j >= 0; --j) {
      Doubles b(static_cast<std::size_t>(width), 0.0);
      for (std::int64_t i = j + 1; i < n; ++i) {
        const double p_ij = p(i, j);
        for (std::int64_t c = 0; c < width; ++c) b[c] += p_ij * w[i * width + c];
      }
      const double p_jj = p(j, j);
      for (std::int64_t c = 0; c < width; ++c) {
        const double w_jc = w[j * width + c] = dy(s.query + j, h, c) + g * b[c];
        const double a = b[c] + p_jj * w_jc;
        dv[j * width + c] += (1 - g) * a;
        dgamma += b[c] * y(s.query + j, h, c) - a * v(s.key + j, kv, c);
        d[j] += w_jc * y(s.query + j, h, c);
      }
    }
  }

  /// The same for values. d uses the same products as dS_ij, so that they cancel exactly in a row
  /// with only one key.
  void solve_values(Doubles& dv, const Result& dgain) {
    for (std::int64_t j = n - 1; j >= 0; --j) {
      double w_z = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const double z_jc = z(s.query + j, h, c);
        double sum = dy(s.query + j, h, c);
        for (std::int64_t i = j + 1; i < n; ++i) sum += p(i, j) * w[i * width + c];
        dv[j * width + c] = sum;
        w_z += sum * z_jc;
        w[j * width + c] = gain(s.query + j, h) * sum;
        d[j] += w[j * width + c] * z_jc;
      }
      dgain.put(gain.entry(s.query + j, h), w_z);
    }
  }

  /// dS_ij. Row i reads U'_j of row j, or y_j for values.
  double ds(std::int64_t i, std::int64_t j) const {
    const double g = op.of == ChainOf::attention ? gain(0, h) : 1;
    double dp = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const double own = op.of == ChainOf::attention ? (1 - g) * v(s.key + j, kv, c) : 0;
      dp += w[i * width + c] * (own + (j < i ? g * y(s.query + j, h, c) : 0));
    }
    return p(i, j) * (dp - d[i]);
  }
};

}  // namespace

void run(ReferenceBackend&, const Chain& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), earlier(op.earlier);
  const HeadResult y(op.y), read(op.read);
  const Gains gain(op.of, op.gain, op.y.heads);
  const Result log_sums(op.log_sum);
  const std::int64_t width = op.v.width;

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      const std::int64_t kv = h / scores.group();
      // The values of finished rows that later rows read: U_j for attention, y_j for values.
      Doubles u(static_cast<std::size_t>(s.keys * width));
      const auto finish = [&](std::int64_t j, std::int64_t c, double g, double y_jc) {
        const bool attention = op.of == ChainOf::attention;
        u[j * width + c] = attention ? (1 - g) * v(s.key + j, kv, c) + g * y_jc : y_jc;
      };
      for (std::int64_t j = 0; j < s.position(0); ++j) {
        const double g = op.of == ChainOf::attention ? gain(0, h) : 1;
        for (std::int64_t c = 0; c < width; ++c) finish(j, c, g, earlier(s.key + j, h, c));
      }
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.position(t), row = s.query + t;
        const double g = gain(row, h);
        double log_sum = 0;
        const Doubles p = op.of == ChainOf::attention ? weights_row(scores, s, t, h, log_sum)
                                                      : strict_softmax(scores, s, t, h, log_sum);
        for (std::int64_t c = 0; c < width; ++c) {
          const double own = v(s.key + i, kv, c);
          double sum = 0;
          for (std::int64_t j = 0; j < i; ++j) sum += p[j] * u[j * width + c];
          read.put(row, h, c, sum);
          const double y_ic = op.of == ChainOf::attention ? sum + p[i] * ((1 - g) * own)  //
                                                          : own + g * sum;
          y.put(row, h, c, y_ic);
          finish(i, c, g, y_ic);
        }
        log_sums.put(row, h, log_sum);
      }
    }
  }
}

void run(ReferenceBackend&, const ChainBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const Result dgain(op.dgain);
  const std::int64_t width = op.scores.q.width, v_width = op.v.width, group = scores.group();
  const Rows log_sum(op.log_sum);
  const Gains gain(op.of, op.gain, op.y.heads);
  const bool attention = op.of == ChainOf::attention;
  Doubles dgamma(static_cast<std::size_t>(attention ? op.gain.size() : 0), 0.0);
  ScoreGradients more(op.scores, op.dscores);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    const std::int64_t n = s.keys;
    for (std::int64_t kv = 0; kv < op.v.heads; ++kv) {
      Doubles sum_dk(static_cast<std::size_t>(n * width), 0.0);
      Doubles sum_dv(static_cast<std::size_t>(n * v_width), 0.0);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        Back back{op, scores, s, h};
        if (attention) {
          back.solve_attention(sum_dv, dgamma[static_cast<std::size_t>(gain.entry(0, h))]);
        } else {
          back.solve_values(sum_dv, dgain);
        }
        for (std::int64_t i = 0; i < n; ++i) {
          const double tau = scores.tau(s, i, h);
          more.add_sink(h, std::exp(scores.sink(h) - log_sum(s.query + i, h)), back.d[i]);
          Doubles r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = 0; j < (attention ? i + 1 : i); ++j) {
            const double ds = back.ds(i, j), scaled = op.scores.scale * ds;
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
    dgain.put(static_cast<std::int64_t>(i), dgamma[i]);
  }
}

}  // namespace longhand::reference
