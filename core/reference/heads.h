#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/contract/attention.h"

namespace longhand::reference {

/// A copy of heads as doubles: x(i, h, c) is entry c of head h of row i. Any float type can be
/// copied, even bf16, which the reference backend itself does not support.
class HeadRows {
 public:
  explicit HeadRows(const Heads& x);
  double operator()(std::int64_t i, std::int64_t h, std::int64_t c) const {
    return entries_[i * columns_ + first_ + h * width_ + c];
  }

 private:
  std::vector<double> entries_;
  std::int64_t columns_, first_, width_;
};

/// A tensor of heads to which results are written. If the tensor is empty, put() does nothing.
class HeadResult {
 public:
  explicit HeadResult(const HeadsTarget& y);
  explicit HeadResult(const Heads& y) : HeadResult(HeadsTarget{y, false}) {}
  void put(std::int64_t i, std::int64_t h, std::int64_t c, double value) const;

 private:
  void* address_;
  bool wide_, add_;
  std::int64_t columns_, first_, width_;
};

/// A matrix of doubles. All entries are initially 0.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns)
      : columns_(columns), entries_(static_cast<std::size_t>(rows * columns), 0.0) {}
  double& operator()(std::int64_t i, std::int64_t c) { return entries_[i * columns_ + c]; }
  double operator()(std::int64_t i, std::int64_t c) const { return entries_[i * columns_ + c]; }
  /// Writes row i of the matrix to row first + i of head h, for every i.
  void put(const HeadResult& to, std::int64_t first, std::int64_t h) const;

 private:
  std::int64_t columns_;
  std::vector<double> entries_;
};

/// One sequence. `query` and `key` are the indices of its first query and its first key among all
/// rows; `queries` and `keys` count its queries and keys.
struct Sequence {
  std::int64_t query, queries, key, keys;
  std::int64_t position(std::int64_t t) const { return keys - queries + t; }  // position of query t
};
std::vector<Sequence> sequences(const Segments& queries, const Segments& keys);

/// Returns the dot product of two rows of `width` entries: row i of head h of a, and row j of head
/// g of b.
double dot(const HeadRows& a, std::int64_t i, std::int64_t h, const HeadRows& b, std::int64_t j,
           std::int64_t g, std::int64_t width);

/// Computes the scores of core/contract/scores.h one at a time. If own_key is false, a query does
/// not see the key at its own position.
class ScoreRows {
 public:
  explicit ScoreRows(const Scores& scores, bool own_key = true);
  /// Returns scale q . k for query t of the sequence and the key at position j.
  double raw(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j) const;
  double tau(const Sequence& s, std::int64_t t, std::int64_t h) const;
  /// Returns the score of query t and the key at position j: raw() times tau (Scores::multiplier),
  /// plus the shift (Scores::decay) of the query, minus the shift of the key.
  double operator()(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j) const;
  /// Query t sees the keys at the positions first() .. end() - 1.
  std::int64_t first(const Sequence& s, std::int64_t t) const;
  std::int64_t end(const Sequence& s, std::int64_t t) const {
    return causal_ ? s.position(t) + (own_key_ ? 1 : 0) : s.keys;
  }
  /// The scores of all keys that query t sees.
  std::vector<double> row(const Sequence& s, std::int64_t t, std::int64_t h) const;
  std::int64_t group() const { return group_; }  // number of query heads that share a key head

  HeadRows q, k;

 private:
  double scale_;
  Tensor tau_, shift_;
  bool own_key_, causal_;
  std::int64_t window_, width_, group_;
};

/// Sums the gradients of tau (Scores::multiplier) and of the shifts (Scores::decay) over all
/// scores. put() stores each of the two gradients that has a target.
class ScoreGradients {
 public:
  ScoreGradients(const ScoreRows& rows, const Scores& scores, const ScoreTargets& targets);
  /// Adds the terms of one score to the gradients of tau and of the shifts. `ds` is the gradient of
  /// the score of query t and the key at position j.
  void add(const Sequence& s, std::int64_t t, std::int64_t h, std::int64_t j, double ds);
  void put() const;

 private:
  const ScoreRows& rows_;
  const ScoreTargets& targets_;
  std::int64_t heads_;
  std::vector<double> tau_, shift_;
};

void put(const Target& target, const std::vector<double>& values);

/// A sink is a score without a value, which takes a share of a row's weights. softmax() replaces
/// the scores s of a row by the weights exp(s) / (sum of exp(s) + exp(sink)), and returns the
/// logarithm of the denominator. With sink = no_sink, the row has no sink.
inline constexpr double no_sink = -std::numeric_limits<double>::infinity();
double softmax(std::span<double> row, double sink = no_sink);

/// One query of one head, and the positions [first, end) of the keys that it sees.
struct Query {
  const Sequence& s;
  std::int64_t t, head, first, end;
  std::int64_t row() const { return s.query + t; }
};

/// A function that replaces the scores of a query's visible keys by their weights P, in place.
/// attend() calls it for every query i and computes y_i = sum_j P_ij v_j.
using Weigh = std::function<void(const Query& query, std::span<double> row)>;
void attend(const ScoreRows& scores, const Attention& op, const Weigh& weigh);
/// Stores the weights P that `weigh` computes.
void write_weights(const ScoreRows& scores, const AttentionWeights& op, const Weigh& weigh);

/// The scores `s` of a query's visible keys, the gradients `dp` of their weights, the weights `p`,
/// and the gradients `ds` of the scores. attend_backward() sets `s` and `dp`, and calls a function
/// that sets `p` and `ds`. attend_backward() then computes all other gradients from `p` and `ds`.
struct RowGradient {
  std::vector<double> s, dp, p, ds;
};
using RowBackward = std::function<void(const Query& query, RowGradient& row)>;
void attend_backward(const ScoreRows& scores, const AttentionBackward& op,
                     const RowBackward& gradient);

}  // namespace longhand::reference
