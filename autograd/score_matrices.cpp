#include "autograd/score_matrices.h"

#include "autograd/operators.h"
#include "autograd/rearrange.h"

namespace longhand {
namespace {

/// The rows first .. first + count - 1 of a [rows, heads] tensor, transposed to [heads, count].
Var by_head(const Var& x, std::int64_t first, std::int64_t count) {
  return permute(slice(x, first, count), {1, 0});
}

}  // namespace

Var matrices(const HeadVars& x, std::int64_t first, std::int64_t count) {
  const Var rows = columns(slice(x.data, first, count), x.first_column, x.heads * x.width);
  return permute(reshape(rows, {count, x.heads, x.width}), {1, 0, 2});
}

Tensor constant(const Var& like, const Shape& shape, const std::vector<double>& values) {
  return Tensor::from(like.backend(), shape, like.value().dtype(), values);
}

Sequence sequence_of(const Segments& queries, const Segments& keys, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  return {number, queries.begins()[at], queries.lengths()[at], keys.begins()[at],
          keys.lengths()[at]};
}

Var SequenceScores::scores(std::optional<Math> math) const {
  const ScoreVars& s = vars;
  const std::int64_t group = s.q.heads / s.k.heads;
  const Shape shape{s.q.heads, at.queries, at.keys};
  const Var q =
      reshape(matrices(s.q, at.query, at.queries), {s.k.heads, group * at.queries, s.q.width});
  const Var k = matrices(s.k, at.key, at.keys);
  Var scores = reshape(matmul(q, k,
                              {.transpose_b = true,
                               .alpha = s.value().scale,
                               .out = master_type(q.value().dtype()),
                               .math = math}),
                       shape);
  if (s.multiplier) scores = scores * by_query(s.multiplier);
  if (s.decay) {
    const Var queries = by_head(s.decay, at.key + at.keys - at.queries, at.queries);
    const Var keys = by_head(s.decay, at.key, at.keys);
    scores = scores + (reshape(queries, {s.q.heads, at.queries, 1}) -
                       reshape(keys, {s.q.heads, 1, at.keys}));
  }
  return more ? add(scores, more(shape, at.number)) : scores;
}

Var SequenceScores::seen(const Var& like, bool own_key) const {
  std::vector<double> sees;  // 1 if the query sees the key, otherwise 0; equal for all heads
  for (std::int64_t t = 0; t < at.queries; ++t) {
    const std::int64_t position = at.keys - at.queries + t;
    for (std::int64_t j = 0; j < at.keys; ++j) {
      const bool before = j + (own_key ? 0 : 1) <= position;
      sees.push_back(before && (vars.window == 0 || j > position - vars.window) ? 1.0 : 0.0);
    }
  }
  return constant(like, {at.queries, at.keys}, sees);
}

Var SequenceScores::by_query(const Var& x) const {
  return reshape(by_head(x, at.query, at.queries), {vars.q.heads, at.queries, 1});
}

}  // namespace longhand
