#pragma once

#include <optional>
#include <variant>

#include "autograd/heads.h"
#include "core/contract/attention.h"

/// Differentiable operations of core/contract/attention.h.
namespace longhand {

/// The attention scores of core/contract/scores.h, with tensors that may require gradients.
struct ScoreVars {
  HeadVars q, k;
  Segments queries;
  Segments keys = {};                // default: the segments of the queries
  std::optional<double> scale = {};  // default: 1 / sqrt(width)
  Var multiplier = {}, decay = {};
  std::int64_t window = 0;
  bool causal = true;  // false: every query sees every key of its segment (softmax only)
  std::optional<Math> math = {};

  Scores value() const;
};

/// The tensors that accumulate the gradients of ScoreVars::multiplier and ScoreVars::decay. Unlike
/// ScoreVars, this class does not keep the values of `multiplier` and `decay` in memory.
class ScoreSinks {
 public:
  explicit ScoreSinks(const ScoreVars& s)
      : multiplier_(s.multiplier.sink()), decay_(s.decay.sink()) {}
  ScoreTargets targets() const { return {multiplier_.target(), decay_.target()}; }

 private:
  Sink multiplier_, decay_;
};

/// A rule is a formula that turns attention scores into weights, such as softmax. The structs below
/// are the rules of core/contract/attention.h with differentiable tensors; SoftmaxVars corresponds
/// to SoftmaxRule. Some rules have an input tensor that other rules do not have, such as the sink
/// of softmax. input() returns this tensor, or an empty Var if the rule has none.
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

/// Converts the Vars of a rule to tensors. The result also has tensors in which a forward pass
/// saves numbers for the backward pass; these are left empty.
AttentionRule value_of(const RuleVars& rule);

/// Returns the output y of attention, [query tokens, q.heads * v.width].
Var attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {});
HeadsBackward attention_into(const ScoreVars& scores, const HeadVars& v, const Heads& y,
                             const RuleVars& rule = {});

/// Returns the attention weights P. For their layout see AttentionWeights
/// (core/contract/attention.h).
Tensor attention_weights(const ScoreVars& scores, const RuleVars& rule = {});
Tensor attention_weights(const Scores& scores, const AttentionRule& rule = {});

/// Throws an Error that names the first score that is NaN or infinite. Does nothing unless
/// BackendOptions::checked is set. If own_key is false, a query does not see the key at its own
/// position, and the score of this key is not checked.
void check_scores(std::string_view op, const Scores& scores, bool own_key = true);

}  // namespace longhand
