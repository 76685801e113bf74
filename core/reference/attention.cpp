#include "core/contract/attention.h"

#include <cmath>
#include <limits>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"
#include "core/reference/softmax_row.h"

namespace longhand::reference {

std::vector<double> softmax_row(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                std::int64_t h, double& log_sum) {
  const std::int64_t p = s.position(t), first = scores.first(s, t);
  std::vector<double> row(static_cast<std::size_t>(p + 1), 0.0);
  double max = scores.sink(h);
  for (std::int64_t j = first; j <= p; ++j) {
    row[j] = scores(s, t, h, j);
    if (row[j] > max || std::isnan(row[j])) max = row[j];  // NaN is not hidden
  }
  double sum = std::exp(scores.sink(h) - max);
  for (std::int64_t j = first; j <= p; ++j) sum += row[j] = std::exp(row[j] - max);
  for (std::int64_t j = first; j <= p; ++j) row[j] /= sum;
  log_sum = max + std::log(sum);
  return row;
}

void run(ReferenceBackend&, const Attention& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v);
  const HeadResult y(op.y);
  const Result log_sums(op.log_sum);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      for (std::int64_t t = 0; t < s.queries; ++t) {
        double log_sum = 0;
        const std::vector<double> p = softmax_row(scores, s, t, h, log_sum);
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          double sum = 0;
          for (std::int64_t j = 0; j <= s.position(t); ++j) {
            sum += p[j] * v(s.key + j, h / scores.group(), c);
          }
          y.put(s.query + t, h, c, sum);
        }
        log_sums.put(s.query + t, h, log_sum);
      }
    }
  }
}

void run(ReferenceBackend&, const AttentionBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), y(op.y), dy(op.dy);
  const Rows log_sum(op.log_sum);
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
          const double d = dot(dy, i, h, y, i, h, v_width);
          more.add_sink(h, std::exp(scores.sink(h) - log_sum(i, h)), d);
          std::vector<double> r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = scores.first(s, t); j <= s.position(t); ++j) {
            const double p = std::exp(scores(s, t, h, j) - log_sum(i, h));
            const double dp = dot(dy, i, h, v, s.key + j, g, v_width);
            const double ds = p * (dp - d);
            more.add(s, t, h, j, ds, scores.raw(s, t, h, j));
            for (std::int64_t c = 0; c < width; ++c) {
              r[c] += op.scores.scale * ds * scores.k(s.key + j, g, c);
              sum_dk[j * width + c] += op.scores.scale * tau * ds * scores.q(i, h, c);
            }
            for (std::int64_t c = 0; c < v_width; ++c) sum_dv[j * v_width + c] += p * dy(i, h, c);
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
        const std::vector<double> p = softmax_row(scores, s, t, h, log_sum);
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
      for (std::int64_t j = scores.first(s, t); j <= s.position(t); ++j) {
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
