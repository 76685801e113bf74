#include "core/contract/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

/// S_ij of a query for the keys before its own, and the logarithm of their sum; 0 without any.
std::vector<double> strict_softmax(const ScoreRows& scores, const Sequence& s, std::int64_t t,
                                   std::int64_t h, double& log_sum) {
  std::vector<double> p;
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

}  // namespace

void run(ReferenceBackend&, const Chain& op) {
  const ScoreRows scores(op.scores);
  const HeadRows v(op.v), earlier(op.earlier);
  const HeadResult y(op.y), read(op.read);
  const Rows gain(op.gain);
  const Result log_sums(op.log_sum);
  const std::int64_t width = op.v.width, heads = op.y.heads;

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<double> done(static_cast<std::size_t>(s.keys * width));  // y_j
      for (std::int64_t j = 0; j < s.position(0); ++j) {
        for (std::int64_t c = 0; c < width; ++c) done[j * width + c] = earlier(s.key + j, h, c);
      }
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t i = s.position(t), row = (s.query + t) * heads + h;
        double log_sum = 0;
        const std::vector<double> p = strict_softmax(scores, s, t, h, log_sum);
        for (std::int64_t c = 0; c < width; ++c) {
          double z = 0;
          for (std::int64_t j = 0; j < i; ++j) z += p[j] * done[j * width + c];
          done[i * width + c] = v(s.key + i, h, c) + gain(row) * z;
          read.put(s.query + t, h, c, z);
          y.put(s.query + t, h, c, done[i * width + c]);
        }
        log_sums.put(s.query + t, h, log_sum);
      }
    }
  }
}

void run(ReferenceBackend&, const ChainBackward& op) {
  const ScoreRows scores(op.scores);
  const HeadRows y(op.y), read(op.read), dy(op.dy);
  const Rows gain(op.gain), log_sum(op.log_sum);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const Result dgain(op.dgain);
  const std::int64_t width = op.scores.q.width, v_width = op.y.width, heads = op.y.heads;

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    const std::int64_t n = s.keys;
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto at = [&](std::int64_t i) { return (s.query + i) * heads + h; };
      const auto p = [&](std::int64_t i, std::int64_t j) {
        return std::exp(scores(s, i, h, j) - log_sum(at(i)));
      };
      std::vector<double> w(static_cast<std::size_t>(n * v_width));  // g_i W_i
      std::vector<double> dots(static_cast<std::size_t>(n), 0.0);    // g_i W_i . z_i
      for (std::int64_t j = n - 1; j >= 0; --j) {
        double w_z = 0;
        for (std::int64_t c = 0; c < v_width; ++c) {
          double sum = dy(s.query + j, h, c);
          for (std::int64_t i = j + 1; i < n; ++i) sum += p(i, j) * w[i * v_width + c];
          dv.put(s.key + j, h, c, sum);
          w_z += sum * read(s.query + j, h, c);
          w[j * v_width + c] = gain(at(j)) * sum;
          // The products that dS_ij has too: where a row has one key alone they cancel exactly.
          dots[j] += w[j * v_width + c] * read(s.query + j, h, c);
        }
        dgain.put(at(j), w_z);
      }

      std::vector<double> sum_dk(static_cast<std::size_t>(n * width), 0.0);
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<double> sum_dq(static_cast<std::size_t>(width), 0.0);
        for (std::int64_t j = 0; j < i; ++j) {
          double w_y = 0;
          for (std::int64_t c = 0; c < v_width; ++c) {
            w_y += w[i * v_width + c] * y(s.query + j, h, c);
          }
          const double ds = op.scores.scale * p(i, j) * (w_y - dots[i]);
          for (std::int64_t c = 0; c < width; ++c) {
            sum_dq[c] += ds * scores.k(s.key + j, h, c);
            sum_dk[j * width + c] += ds * scores.q(s.query + i, h, c);
          }
        }
        for (std::int64_t c = 0; c < width; ++c) dq.put(s.query + i, h, c, sum_dq[c]);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t c = 0; c < width; ++c) dk.put(s.key + j, h, c, sum_dk[j * width + c]);
      }
    }
  }
}

}  // namespace longhand::reference
