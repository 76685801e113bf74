#pragma once

#include <optional>

#include "autograd/heads.h"
#include "core/contract/attention.h"

/// Differentiable forms of core/contract/attention.h.
namespace longhand {

/// Scores whose q, k and other tensors are differentiable.
struct ScoreVars {
  HeadVars q, k;
  Segments queries;
  Segments keys = {};                // empty: the same as the queries'
  std::optional<double> scale = {};  // none: 1 / sqrt(width)
  Var tau = {}, shift = {}, sink = {};
  std::int64_t window = 0;
  std::optional<Math> math = {};
  Rule rule = Rule::softmax;
  Var pull = {};

  Scores value() const;
  /// True if a tape is recording and the scores, v or `more` require a gradient.
  bool recorded_with(const HeadVars& v, const Var& more = {}) const;
};

/// The sinks of the gradients of tau, shift, sink and pull. They do not keep the values alive.
class ScoreSinks {
 public:
  explicit ScoreSinks(const ScoreVars& s)
      : tau_(s.tau.sink()), shift_(s.shift.sink()), sink_(s.sink.sink()), pull_(s.pull.sink()) {}
  ScoreTargets targets() const {
    return {tau_.target(), shift_.target(), sink_.target(), pull_.target()};
  }

 private:
  Sink tau_, shift_, sink_, pull_;
};

/// [query tokens, q.heads * v.width]
Var attention(const ScoreVars& scores, const HeadVars& v);
HeadsBackward attention_into(const ScoreVars& scores, const HeadVars& v, const Heads& y);

/// P itself, T x T: see AttentionWeights.
Tensor attention_weights(const ScoreVars& scores);
Tensor attention_weights(const Scores& scores);

/// If the backend checks scores, throws an Error that names the first score that is NaN or
/// infinite.
void check_scores(std::string_view op, const Scores& scores);

}  // namespace longhand
