#include "core/reference/heads.h"

#include <algorithm>
#include <limits>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

HeadRows::HeadRows(const Heads& x)
    : address_(x.data.address()),
      type_(x.data.dtype()),
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

ScoreRows::ScoreRows(const Scores& scores)
    : q(scores.q),
      k(scores.k),
      rule(scores.rule),
      scale_(scores.scale),
      tau_(scores.tau),
      shift_(scores.shift),
      sink_(scores.sink),
      pull_(scores.pull),
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

double ScoreRows::sink(std::int64_t h) const {
  return sink_ ? Rows(sink_)(h) : -std::numeric_limits<double>::infinity();
}

double ScoreRows::pull(const Sequence& s, std::int64_t t, std::int64_t h) const {
  return pull_ ? Rows(pull_)(s.query + t, h) : 0;
}

std::int64_t ScoreRows::first(const Sequence& s, std::int64_t t) const {
  return window_ > 0 ? std::max<std::int64_t>(0, s.position(t) - window_ + 1) : 0;
}

ScoreGradients::ScoreGradients(const Scores& scores, const ScoreTargets& targets)
    : targets_(targets),
      heads_(scores.q.heads),
      tau_(static_cast<std::size_t>(targets.tau ? scores.tau.size() : 0), 0.0),
      shift_(static_cast<std::size_t>(targets.shift ? scores.shift.size() : 0), 0.0),
      sink_(static_cast<std::size_t>(heads_), 0.0),
      pull_(static_cast<std::size_t>(targets.pull ? scores.pull.size() : 0), 0.0) {}

void ScoreGradients::add(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j,
                         double ds, double raw) {
  if (targets_.tau) tau_[(s.query + t) * heads_ + h] += ds * raw;
  if (!targets_.shift) return;
  shift_[(s.key + s.position(t)) * heads_ + h] += ds;
  shift_[(s.key + j) * heads_ + h] -= ds;
}

void ScoreGradients::add_pull(const Sequence& s, std::int64_t t, std::int64_t h, double sum) {
  if (targets_.pull) pull_[(s.query + t) * heads_ + h] += sum;
}

void ScoreGradients::put() const {
  const auto one = [](const Target& target, const std::vector<double>& values) {
    if (!target) return;
    const Result result(target);
    for (std::size_t i = 0; i < values.size(); ++i) {
      result.put(static_cast<std::int64_t>(i), values[i]);
    }
  };
  one(targets_.tau, tau_);
  one(targets_.shift, shift_);
  one(targets_.sink, sink_);
  one(targets_.pull, pull_);
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
