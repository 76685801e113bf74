#include "core/contract/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/reference/weights_row.h"

namespace longhand::reference {

namespace {

/// Turns scores into softmax weights in place, and returns the log of their denominator.
double softmax_of(std::span<double> row, double sink) {
  double max = sink;
  for (const double s : row) {
    if (s > max || std::isnan(s)) max = s;  // keep NaN visible
  }
  double sum = std::exp(sink - max);
  for (double& s : row) sum += s = std::exp(s - max);
  for (double& s : row) s /= sum;
  return max + std::log(sum);
}

constexpr double bits = 1 / std::numbers::ln2;  // per unit of score

/// Turns a row of scores into weights by another rule, in place. Returns the log of the denominator
/// if the rule has one, and entmax's threshold.
double weights_of(Rule by, std::span<double> row, double pull) {
  if (by == Rule::entmax) {
    for (double& s : row) s /= 2;
    const double t = rules::Entmax::threshold(row.data(), std::ssize(row));
    for (double& s : row) s = std::pow(rules::Entmax::weight(s, t), 2);
    const auto has = [](double p) { return p > 0; };
    if (std::ranges::count_if(row, has) == 1) *std::ranges::find_if(row, has) = 1;
    return t;
  }
  if (by == Rule::stick) {
    double left = 1;
    for (auto s = row.rbegin(); s != row.rend(); ++s) *s = rules::Stick::weigh(bits * *s, left);
    return 0;
  }
  double count = 0;
  for (auto s = row.rbegin(); s != row.rend(); ++s) *s = rules::Tra::logit(*s, pull, count);
  if (count > 0) return softmax_of(row, -std::numeric_limits<double>::infinity());
  std::ranges::fill(row, 0.0);
  return 0;
}

/// D of a row: the mean of dP by P, or by its roots for entmax; the sum for stick. It is computed
/// from P and dP, not from what the forward pass saved, so that an error that stored tensors bring
/// is no part of this reference.
double row_dot(Rule by, const std::vector<double>& p, const std::vector<double>& dp) {
  double sum = 0, roots = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double w = by == Rule::entmax ? std::sqrt(p[j]) : p[j];
    sum += w * dp[j];
    roots += w;
  }
  return by == Rule::entmax ? sum / roots : sum;
}

/// dS of query t for the keys that it sees, from their scores, P and dP, indexed by position.
std::vector<double> score_gradients(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                    std::int64_t h, const std::vector<double>& p,
                                    const std::vector<double>& dp, double d) {
  std::vector<double> ds(p.size(), 0.0);
  if (scores.rule == Rule::stick) {  // from the first key on: `rest` is a sum and no difference
    double rest = 0;
    for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
      rest += p[j] * dp[j];
      ds[j] = p[j] * dp[j] - rules::Stick::broken(bits * scores(s, t, h, j)).taken * rest;
    }
    return ds;
  }
  for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
    ds[j] = (scores.rule == Rule::entmax ? std::sqrt(p[j]) : p[j]) * (dp[j] - d);
  }
  return ds;
}

/// dpull of a row.
double pull_gradient(const ScoreRows& scores, const Sequence& s, std::int64_t t, std::int64_t h,
                     const std::vector<double>& ds) {
  double count = 0, sum = 0;
  for (std::int64_t j = scores.end(s, t) - 1; j >= scores.first(s, t); --j) {
    rules::Tra::logit(scores(s, t, h, j), 0.0, count);
    sum += ds[j] * count;
  }
  return sum;
}

}  // namespace

std::vector<double> weights_row(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                std::int64_t h, double& log_sum) {
  const std::int64_t first = scores.first(s, t), end = scores.end(s, t);
  std::vector<double> row(static_cast<std::size_t>(s.position(t) + 1), 0.0);
  for (std::int64_t j = first; j < end; ++j) row[j] = scores(s, t, h, j);
  const std::span<double> seen(row.data() + first, static_cast<std::size_t>(end - first));
  log_sum = scores.rule == Rule::softmax ? softmax_of(seen, scores.sink(h))
                                         : weights_of(scores.rule, seen, scores.pull(s, t, h));
  return row;
}

void run(ReferenceBackend&, const Attention& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v);
  const HeadResult y(op.y), mean(op.mean);
  const Result log_sums(op.log_sum);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      for (std::int64_t t = 0; t < s.queries; ++t) {
        double log_sum = 0;
        const std::vector<double> p = weights_row(scores, s, t, h, log_sum);
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          double sum = 0;
          for (std::int64_t j = 0; j <= s.position(t); ++j) {
            sum += p[j] * v(s.key + j, h / scores.group(), c);
          }
          y.put(s.query + t, h, c, sum);
          if (!op.mean) continue;
          double roots = 0, weighted = 0;
          for (std::int64_t j = 0; j <= s.position(t); ++j) {
            roots += std::sqrt(p[j]);
            weighted += std::sqrt(p[j]) * v(s.key + j, h / scores.group(), c);
          }
          mean.put(s.query + t, h, c, weighted / roots);
        }
        log_sums.put(s.query + t, h, log_sum);
      }
    }
  }
}

void run(ReferenceBackend&, const AttentionBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), dy(op.dy);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const std::int64_t width = op.scores.q.width, v_width = op.v.width;
  ScoreGradients more(op.scores, op.dscores);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t g = 0; g < op.v.heads;
         ++g) {  // one key head and the query heads of its group
      std::vector<double> sum_dk(static_cast<std::size_t>(s.keys * width), 0.0);
      std::vector<double> sum_dv(static_cast<std::size_t>(s.keys * v_width), 0.0);
      for (std::int64_t h = g * scores.group(); h < (g + 1) * scores.group(); ++h) {
        for (std::int64_t t = 0; t < s.queries; ++t) {
          const std::int64_t i = s.query + t;
          const double tau = scores.tau(s, t, h);
          std::vector<double> dp(static_cast<std::size_t>(s.position(t) + 1), 0.0);
          for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
            dp[j] = dot(dy, i, h, v, s.key + j, g, v_width);
          }
          double log_sum = 0;
          const std::vector<double> p = weights_row(scores, s, t, h, log_sum);
          const double d = row_dot(scores.rule, p, dp);
          if (op.scores.sink) more.add_sink(h, std::exp(scores.sink(h) - log_sum), d);
          const std::vector<double> ds = score_gradients(scores, s, t, h, p, dp, d);
          if (op.dscores.pull) more.add_pull(s, t, h, pull_gradient(scores, s, t, h, ds));
          std::vector<double> r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
            more.add(s, t, h, j, ds[j], scores.raw(s, t, h, j));
            for (std::int64_t c = 0; c < width; ++c) {
              r[c] += op.scores.scale * ds[j] * scores.k(s.key + j, g, c);
              sum_dk[j * width + c] += op.scores.scale * tau * ds[j] * scores.q(i, h, c);
            }
            for (std::int64_t c = 0; c < v_width; ++c) {
              sum_dv[j * v_width + c] += p[j] * dy(i, h, c);
            }
          }
          for (std::int64_t c = 0; c < width; ++c) dq.put(i, h, c, tau * r[c]);
        }
      }
      for (std::int64_t j = 0; j < s.keys; ++j) {
        for (std::int64_t c = 0; c < width; ++c) dk.put(s.key + j, g, c, sum_dk[j * width + c]);
        for (std::int64_t c = 0; c < v_width; ++c) {
          dv.put(s.key + j, g, c, sum_dv[j * v_width + c]);
        }
      }
    }
  }
  more.put();
}

void run(ReferenceBackend&, const AttentionWeights& op) {
  const ScoreRows scores(op.scores);
  const Result weights(op.weights);
  std::int64_t at = 0;
  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.scores.q.heads; ++h) {
      for (std::int64_t t = 0; t < s.queries; ++t) {
        double log_sum = 0;
        const std::vector<double> p = weights_row(scores, s, t, h, log_sum);
        for (std::int64_t j = 0; j < s.keys; ++j) {
          weights.put(at++, j <= s.position(t) ? p[j] : 0);
        }
      }
    }
  }
}

void run(ReferenceBackend&, const FindBadScore& op) {
  const ScoreRows scores(op.scores);
  auto* found = op.found.data<std::int32_t>();
  const std::vector<Sequence> all = sequences(op.scores.queries, op.scores.keys);
  for (std::size_t number = 0; number < all.size(); ++number) {
    const Sequence& s = all[number];
    for (std::int64_t t = 0; t < s.queries; ++t) {
      for (std::int64_t j = scores.first(s, t); j < scores.end(s, t); ++j) {
        for (std::int64_t h = 0; h < op.scores.q.heads; ++h) {
          if (std::isfinite(scores(s, t, h, j))) continue;
          found[0] = static_cast<std::int32_t>(number);
          found[1] = static_cast<std::int32_t>(s.position(t));
          found[2] = static_cast<std::int32_t>(j);
          found[3] = static_cast<std::int32_t>(h);
          return;
        }
      }
    }
  }
  for (int i = 0; i < 4; ++i) found[i] = -1;
}

}  // namespace longhand::reference
