#include "autograd/softmax.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/score_matrices.h"

namespace longhand {
namespace {

/// Returns the weights of a softmax over the scores [heads, queries, keys] with a sink. The sink
/// adds one score to each row but has no value vector, and its weight is not part of the result.
/// `before` is the number of keys before the position of the first query, or the number of all keys
/// if there is no causal mask.
Var with_sink(const Var& scores, const Var& sink, std::int64_t before) {
  const std::int64_t heads = scores.shape()[0], queries = scores.shape()[1];
  const std::int64_t keys = scores.shape()[2];
  std::vector<double> hidden;
  for (std::int64_t t = 0; t < queries; ++t) {
    for (std::int64_t j = 0; j < keys; ++j) hidden.push_back(j > before + t ? 1.0 : 0.0);
  }
  const Var seen = where(constant(scores, {queries, keys}, hidden),
                         number_like(scores, -std::numeric_limits<double>::infinity()), scores);
  const Var nothing = Tensor::zeros(scores.backend(), {heads, queries, 1}, scores.value().dtype());
  const Var more = nothing + reshape(sink, {heads, 1, 1});
  return narrow(softmax(concat({seen, more}, 2)), 2, 0, keys);
}

}  // namespace

Var weigh(const SequenceScores& s, const SoftmaxVars& rule) {
  Var scores = s.scores();
  const std::int64_t queries = s.at.queries, keys = s.at.keys, window = s.vars.window;
  if (window > 0) {
    // entry [query, key]: 1 if the key is before the query's window, otherwise 0
    std::vector<double> hidden;
    for (std::int64_t t = 0; t < queries; ++t) {
      for (std::int64_t j = 0; j < keys; ++j) {
        hidden.push_back(j > keys - queries + t - window ? 0.0 : 1.0);
      }
    }
    scores = where(constant(scores, {queries, keys}, hidden),
                   number_like(scores, -std::numeric_limits<double>::infinity()), scores);
  }
  if (!rule.sink) return softmax(scores, s.vars.causal);
  return with_sink(scores, rule.sink, s.vars.causal ? keys - queries : keys);
}

SoftmaxGradient gradient_of(const SoftmaxRule& rule, const Heads& y, const Target& dsink) {
  return {.sink = rule.sink, .y = y, .log_denominator = rule.log_denominator, .dsink = dsink};
}

}  // namespace longhand
