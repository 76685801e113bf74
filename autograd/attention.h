#pragma once

#include <optional>
#include <variant>

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
  Var multiplier = {}, decay = {};
  std::int64_t window = 0;
  std::optional<Math> math = {};

  Scores value() const;
};

/// The sinks of the gradients of a score's multiplier and decay. They do not keep the values alive.
class ScoreSinks {
 public:
  explicit ScoreSinks(const ScoreVars& s)
      : multiplier_(s.multiplier.sink()), decay_(s.decay.sink()) {}
  ScoreTargets targets() const { return {multiplier_.target(), decay_.target()}; }

 private:
  Sink multiplier_, decay_;
};

/// The rules of core/contract/attention.h with differentiable tensors.
struct SoftmaxVars {
  Var sink = {};
};
struct StickBreakingVars {};
struct TraVars {
  Var count_bias;
};
struct EntmaxVars {};
using RuleVars = std::variant<SoftmaxVars, StickBreakingVars, TraVars, EntmaxVars>;

/// The rule with the tensors that it reads. The tensors for the backward pass are empty.
AttentionRule value_of(const RuleVars& rule);

/// [query tokens, q.heads * v.width]
Var attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {});
HeadsBackward attention_into(const ScoreVars& scores, const HeadVars& v, const Heads& y,
                             const RuleVars& rule = {});

/// P itself, T x T: see AttentionWeights.
Tensor attention_weights(const ScoreVars& scores, const RuleVars& rule = {});
Tensor attention_weights(const Scores& scores, const AttentionRule& rule = {});

/// If the backend checks scores, throws an Error that names the first score that is NaN or
/// infinite. Without own_key, a query sees only the keys before its own.
void check_scores(std::string_view op, const Scores& scores, bool own_key = true);

}  // namespace longhand
