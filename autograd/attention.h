#pragma once

#include <optional>
#include <variant>

#include "autograd/heads.h"
#include "core/contract/attention.h"

/// Differentiable operations of core/contract/attention.h.
namespace longhand {

/// The scores of core/contract/scores.h with differentiable tensors.
struct ScoreVars {
  HeadVars q, k;
  Segments queries;
  Segments keys = {};                // default: the segments of the queries
  std::optional<double> scale = {};  // default: 1 / sqrt(width)
  Var multiplier = {}, decay = {};
  std::int64_t window = 0;
  std::optional<Math> math = {};

  Scores value() const;
};

/// The gradient targets (Sink of autograd/variable.h) of ScoreVars::multiplier and
/// ScoreVars::decay. A ScoreSinks does not keep the values of these tensors in memory, as a
/// ScoreVars would.
class ScoreSinks {
 public:
  explicit ScoreSinks(const ScoreVars& s)
      : multiplier_(s.multiplier.sink()), decay_(s.decay.sink()) {}
  ScoreTargets targets() const { return {multiplier_.target(), decay_.target()}; }

 private:
  Sink multiplier_, decay_;
};

/// The rules of core/contract/attention.h with differentiable tensors. input() is the rule's own
/// tensor, which may require a gradient. It may be empty.
struct SoftmaxVars {
  Var sink = {};
  SoftmaxRule value() const { return {.sink = sink.value()}; }
  Var input() const { return sink; }
};
struct StickBreakingVars {
  StickBreakingRule value() const { return {}; }
  Var input() const { return {}; }
};
struct TraVars {
  Var count_bias;
  TraRule value() const { return {.count_bias = count_bias.value()}; }
  Var input() const { return count_bias; }
};
struct EntmaxVars {
  EntmaxRule value() const { return {}; }
  Var input() const { return {}; }
};
struct SigmoidVars {
  SigmoidRule value() const { return {}; }
  Var input() const { return {}; }
};
using RuleVars = std::variant<SoftmaxVars, StickBreakingVars, TraVars, EntmaxVars, SigmoidVars>;

/// The rule with the values of its inputs. The tensors that the forward pass saves are empty.
AttentionRule value_of(const RuleVars& rule);

/// Returns y, [query tokens, q.heads * v.width].
Var attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {});
HeadsBackward attention_into(const ScoreVars& scores, const HeadVars& v, const Heads& y,
                             const RuleVars& rule = {});

/// Returns the matrix P: see AttentionWeights.
Tensor attention_weights(const ScoreVars& scores, const RuleVars& rule = {});
Tensor attention_weights(const Scores& scores, const AttentionRule& rule = {});

/// If the backend checks scores, throws an Error that names the first score that is NaN or
/// infinite. If own_key is false, a query does not see the key at its own position.
void check_scores(std::string_view op, const Scores& scores, bool own_key = true);

}  // namespace longhand
