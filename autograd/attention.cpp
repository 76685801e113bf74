#include "autograd/attention.h"

#include <cmath>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand {

Scores ScoreVars::value() const {
  return {.q = q.value(),
          .k = k.value(),
          .queries = queries,
          .keys = keys ? keys : queries,
          .scale = scale.value_or(1 / std::sqrt(static_cast<double>(q.width))),
          .tau = tau.value(),
          .shift = shift.value(),
          .sink = sink.value(),
          .window = window,
          .math = math,
          .rule = rule,
          .pull = pull.value()};
}

bool ScoreVars::recorded_with(const HeadVars& v, const Var& more) const {
  return recorded({&q.data, &k.data, &v.data, &tau, &shift, &sink, &pull, &more});
}

HeadsBackward attention_into(const ScoreVars& s, const HeadVars& v, const Heads& y) {
  const Scores scores = s.value();
  Backend& backend = y.data.backend();
  check_scores("attention", scores);
  Tensor log_sum;
  const bool wanted = s.recorded_with(v);
  if (wanted && s.rule != Rule::stick) {
    log_sum = Tensor(backend, {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  const auto like_y = [&](bool saved) {
    if (!wanted || !saved) return Heads{};
    return Heads{Tensor(backend, {y.data.rows(), y.heads * y.width}, y.data.dtype()), 0, y.heads,
                 y.width};
  };
  const Heads mean = like_y(s.rule == Rule::entmax);
  const Heads residue = like_y(s.rule == Rule::stick && y.data.dtype() == DType::bf16);
  backend(Attention{.scores = scores,
                    .v = v.value(),
                    .y = y,
                    .log_sum = log_sum,
                    .mean = mean,
                    .residue = residue});
  if (!wanted) return {};

  return [scores, q = s.q, k = s.k, v, sinks = ScoreSinks(s), y = mean ? mean : y, log_sum,
          residue](const Heads& dy, bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(AttentionBackward{.scores = scores,
                                        .v = v.value(),
                                        .y = y,
                                        .dy = dy,
                                        .log_sum = log_sum,
                                        .dq = d.q,
                                        .dk = d.k,
                                        .dv = d.v,
                                        .dscores = sinks.targets(),
                                        .residue = residue});
  };
}

Var attention(const ScoreVars& s, const HeadVars& v) {
  const Heads y = output_heads(s.q, v.width);
  return record_heads("attention",
                      {&s.q.data, &s.k.data, &v.data, &s.tau, &s.shift, &s.sink, &s.pull}, y,
                      attention_into(s, v, y));
}

Tensor attention_weights(const ScoreVars& s) { return attention_weights(s.value()); }

Tensor attention_weights(const Scores& scores) {
  Backend& backend = scores.q.data.backend();
  const Tensor weights(backend, {weights_size(scores.queries, scores.keys, scores.q.heads)},
                       master_type(scores.q.data.dtype()));
  backend(AttentionWeights{.scores = scores, .weights = weights});
  return weights;
}

void check_scores(std::string_view op, const Scores& scores) {
  Backend& backend = scores.q.data.backend();
  if (!backend.options().checked) return;
  const Tensor found(backend, {4}, DType::i32);
  backend(FindBadScore{.scores = scores, .found = found});
  const std::vector<std::int32_t> at = found.to_ints();
  LONGHAND_CHECK(at[0] < 0, op, ": the score of query ", at[1], " and key ", at[2], " in head ",
                 at[3], " of sequence ", at[0], " is not finite");
}

}  // namespace longhand
