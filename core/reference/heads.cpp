#include "core/reference/heads.h"

#include <algorithm>
#include <cmath>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

HeadRows::HeadRows(const Heads& x)
    : entries_(x.data ? x.data.to_doubles() : std::vector<double>()),
      columns_(x.data ? x.data.columns() : 0),
      first_(x.first_column),
      width_(x.width) {}

HeadResult::HeadResult(const HeadsTarget& y)
    : address_(y.heads.data.address()),
      wide_(y.heads.data.dtype() == DType::f64),
      add_(y.add),
      columns_(y ? y.heads.data.columns() : 0),
      first_(y.heads.first_column),
      width_(y.heads.width) {}

void HeadResult::put(std::int64_t i, std::int64_t h, std::int64_t c, double value) const {
  if (!address_) return;
  const std::int64_t at = i * columns_ + first_ + h * width_ + c;
  if (wide_) {
    double& y = static_cast<double*>(address_)[at];
    y = add_ ? y + value : value;
  } else {
    float& y = static_cast<float*>(address_)[at];
    y = static_cast<float>(add_ ? static_cast<double>(y) + value : value);
  }
}

void Matrix::put(const HeadResult& to, std::int64_t first, std::int64_t h) const {
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    const auto at = static_cast<std::int64_t>(n);
    to.put(first + at / columns_, h, at % columns_, entries_[n]);
  }
}

std::vector<Sequence> sequences(const Segments& queries, const Segments& keys) {
  std::vector<Sequence> all;
  for (std::size_t s = 0; s < queries.lengths().size(); ++s) {
    all.push_back({queries.begins()[s], queries.lengths()[s], keys.begins()[s], keys.lengths()[s]});
  }
  return all;
}

double dot(const HeadRows& a, std::int64_t i, std::int64_t h, const HeadRows& b, std::int64_t j,
           std::int64_t g, std::int64_t width) {
  double sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += a(i, h, c) * b(j, g, c);
  return sum;
}

ScoreRows::ScoreRows(const Scores& scores, bool own_key)
    : q(scores.q),
      k(scores.k),
      scale_(scores.scale),
      tau_(scores.multiplier),
      shift_(scores.decay),
      own_key_(own_key),
      causal_(scores.causal),
      window_(scores.window),
      width_(scores.q.width),
      group_(scores.q.heads / scores.k.heads) {}

double ScoreRows::raw(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j) const {
  return scale_ * dot(q, s.query + t, h, k, s.key + j, h / group_, width_);
}

double ScoreRows::tau(const Sequence& s, std::int64_t t, std::int64_t h) const {
  return tau_ ? Rows(tau_)(s.query + t, h) : 1;
}

double ScoreRows::operator()(const Sequence& s, std::int64_t t, std::int64_t h,
                             std::int64_t j) const {
  const double score = tau(s, t, h) * raw(s, t, h, j);
  if (!shift_) return score;
  const Rows shift(shift_);
  return score + (shift(s.key + s.position(t), h) - shift(s.key + j, h));
}

std::int64_t ScoreRows::first(const Sequence& s, std::int64_t t) const {
  return window_ > 0 ? std::max<std::int64_t>(0, s.position(t) - window_ + 1) : 0;
}

std::vector<double> ScoreRows::row(const Sequence& s, std::int64_t t, std::int64_t h) const {
  std::vector<double> all;
  for (std::int64_t j = first(s, t); j < end(s, t); ++j) all.push_back((*this)(s, t, h, j));
  return all;
}

ScoreGradients::ScoreGradients(const ScoreRows& rows, const Scores& scores,
                               const ScoreTargets& targets)
    : rows_(rows),
      targets_(targets),
      heads_(scores.q.heads),
      tau_(static_cast<std::size_t>(targets.multiplier ? scores.multiplier.size() : 0), 0.0),
      shift_(static_cast<std::size_t>(targets.decay ? scores.decay.size() : 0), 0.0) {}

void ScoreGradients::add(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j,
                         double ds) {
  if (targets_.multiplier) tau_[(s.query + t) * heads_ + h] += ds * rows_.raw(s, t, h, j);
  if (!targets_.decay) return;
  shift_[(s.key + s.position(t)) * heads_ + h] += ds;
  shift_[(s.key + j) * heads_ + h] -= ds;
}

void ScoreGradients::put() const {
  reference::put(targets_.multiplier, tau_);
  reference::put(targets_.decay, shift_);
}

void put(const Target& target, const std::vector<double>& values) {
  if (!target) return;
  const Result result(target);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.put(static_cast<std::int64_t>(i), values[i]);
  }
}

double softmax(std::span<double> row, double sink) {
  double max = sink;
  for (const double s : row) {
    if (s > max || std::isnan(s)) max = s;  // a NaN becomes the maximum, so that the result is NaN
  }
  double sum = std::exp(sink - max);
  for (double& s : row) sum += s = std::exp(s - max);
  for (double& s : row) s /= sum;
  return max + std::log(sum);
}

void attend(const ScoreRows& scores, const Attention& op, const Weigh& weigh) {
  const HeadRows v(op.v);
  const HeadResult y(op.y);
  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.y.heads; ++h) {
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const Query query{s, t, h, scores.first(s, t), scores.end(s, t)};
        std::vector<double> p = scores.row(s, t, h);
        weigh(query, p);
        for (std::int64_t c = 0; c < op.v.width; ++c) {
          double sum = 0;
          for (std::int64_t j = query.first; j < query.end; ++j) {
            sum += p[j - query.first] * v(s.key + j, h / scores.group(), c);
          }
          y.put(query.row(), h, c, sum);
        }
      }
    }
  }
}

void write_weights(const ScoreRows& scores, const AttentionWeights& op, const Weigh& weigh) {
  const Result weights(op.weights);
  std::int64_t at = 0;
  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t h = 0; h < op.scores.q.heads; ++h) {
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const Query query{s, t, h, scores.first(s, t), scores.end(s, t)};
        std::vector<double> p = scores.row(s, t, h);
        weigh(query, p);
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const bool seen = j >= query.first && j < query.end;
          weights.put(at++, seen ? p[j - query.first] : 0);
        }
      }
    }
  }
}

void attend_backward(const ScoreRows& scores, const AttentionBackward& op,
                     const RowBackward& gradient) {
  const HeadRows v(op.v), dy(op.dy);
  const HeadResult dq(op.dq), dk(op.dk), dv(op.dv);
  const std::int64_t width = op.scores.q.width, v_width = op.v.width, group = scores.group();
  const double scale = op.scores.scale;
  ScoreGradients more(scores, op.scores, op.dscores);

  for (const Sequence& s : sequences(op.scores.queries, op.scores.keys)) {
    for (std::int64_t kv = 0; kv < op.v.heads; ++kv) {
      Matrix sum_dk(s.keys, width), sum_dv(s.keys, v_width);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        for (std::int64_t t = 0; t < s.queries; ++t) {
          const Query query{s, t, h, scores.first(s, t), scores.end(s, t)};
          const std::int64_t i = query.row();
          RowGradient row{.s = scores.row(s, t, h), .dp = {}, .p = {}, .ds = {}};
          for (std::int64_t j = query.first; j < query.end; ++j) {
            row.dp.push_back(dot(dy, i, h, v, s.key + j, kv, v_width));
          }
          gradient(query, row);
          const double tau = scores.tau(s, t, h);
          std::vector<double> r(static_cast<std::size_t>(width), 0.0);
          for (std::int64_t j = query.first; j < query.end; ++j) {
            const double p = row.p[j - query.first], ds = row.ds[j - query.first];
            more.add(s, t, h, j, ds);
            for (std::int64_t c = 0; c < width; ++c) {
              r[c] += scale * ds * scores.k(s.key + j, kv, c);
              sum_dk(j, c) += scale * tau * ds * scores.q(i, h, c);
            }
            for (std::int64_t c = 0; c < v_width; ++c) sum_dv(j, c) += p * dy(i, h, c);
          }
          for (std::int64_t c = 0; c < width; ++c) dq.put(i, h, c, tau * r[c]);
        }
      }
      sum_dk.put(dk, s.key, kv);
      sum_dv.put(dv, s.key, kv);
    }
  }
  more.put();
}

void run(ReferenceBackend&, const Append& op) {
  const HeadRows x(op.x);
  const HeadResult y(op.y);
  for (const Sequence& s : sequences(op.from, op.to)) {
    for (std::int64_t t = 0; t < s.queries; ++t) {
      for (std::int64_t h = 0; h < op.x.heads; ++h) {
        for (std::int64_t c = 0; c < op.x.width; ++c) {
          y.put(s.key + s.position(t), h, c, x(s.query + t, h, c));
        }
      }
    }
  }
}

}  // namespace longhand::reference
