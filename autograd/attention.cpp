#include "autograd/attention.h"

#include <cmath>

#include "autograd/tape.h"
#include "core/backend.h"
#include "core/error.h"

namespace longhand {

/// Calls gradient_of(), which each file of autograd/rules/ defines for its attention rule. It
/// returns the struct that describes the rule's backward pass, such as SoftmaxGradient
/// (core/contract/attention.h). `dinput` is the target for the gradient of the input that only this
/// rule has, such as the sink of softmax.
template <class Rule>
AttentionGradient dispatch(const Rule& rule, const Heads& y, const Target& dinput) {
  typename Rule::Gradient gradient_of(const Rule&, const Heads&, const Target&);
  return gradient_of(rule, y, dinput);
}

namespace {

/// Allocates the tensors that the forward pass of an attention rule (softmax, entmax and so on)
/// saves for its backward pass. Their shapes and types are derived from the output y.
struct Allocate {
  const Heads& y;

  void of_head(std::string_view, const Tensor&) const {}
  void input(std::string_view, const Tensor&) const {}
  void saved(std::string_view, Tensor& x) const {
    x = Tensor(y.data.backend(), {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  void saved(std::string_view, Heads& x) const {
    const Tensor data(y.data.backend(), {y.data.rows(), y.heads * y.width}, y.data.dtype());
    x = {data, 0, y.heads, y.width};
  }
  void residue(std::string_view name, Heads& x) const {
    if (y.data.dtype() == DType::bf16) saved(name, x);
  }
};

Var input_of(const RuleVars& rule) {
  return std::visit([](const auto& r) { return r.input(); }, rule);
}

/// True if a query with this attention rule sees the key at its own position.
bool sees_own_key(const AttentionRule& rule) {
  return std::visit([]<class Rule>(const Rule&) { return Rule::Formulas::own_key; }, rule);
}

/// True if the backward pass of this attention rule reads the output y. Otherwise y may be freed
/// before the backward pass.
bool backward_reads_y(const AttentionRule& rule) {
  return std::visit(
      []<class Rule>(const Rule&) {
        return requires(typename Rule::Gradient gradient) { gradient.y; };
      },
      rule);
}

}  // namespace

Scores ScoreVars::value() const {
  return {.q = q.value(),
          .k = k.value(),
          .queries = queries,
          .keys = keys ? keys : queries,
          .scale = scale.value_or(1 / std::sqrt(static_cast<double>(q.width))),
          .multiplier = multiplier.value(),
          .decay = decay.value(),
          .window = window,
          .causal = causal,
          .math = math};
}

AttentionRule value_of(const RuleVars& rule) {
  return std::visit([](const auto& r) { return AttentionRule(r.value()); }, rule);
}

HeadsBackward attention_into(const ScoreVars& s, const HeadVars& v, const Heads& y,
                             const RuleVars& rule_vars) {
  const Scores scores = s.value();
  AttentionRule rule = value_of(rule_vars);
  const Var input = input_of(rule_vars);
  check_scores("attention", scores, sees_own_key(rule));
  const bool wanted = recorded({&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &input});
  if (wanted) std::visit([&]<class Rule>(Rule& r) { Rule::list(r, Allocate{y}); }, rule);
  y.data.backend()(Attention{.scores = scores, .rule = rule, .v = v.value(), .y = y});
  if (!wanted) return {};

  const Heads kept = backward_reads_y(rule) ? y : Heads{};
  return [scores, rule, q = s.q, k = s.k, v, sinks = ScoreSinks(s), dinput = input.sink(), kept](
             const Heads& dy, bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(AttentionBackward{
        .scores = scores,
        .rule = std::visit([&](const auto& r) { return dispatch(r, kept, dinput.target()); }, rule),
        .v = v.value(),
        .dy = dy,
        .dq = d.q,
        .dk = d.k,
        .dv = d.v,
        .dscores = sinks.targets()});
  };
}

Var attention(const ScoreVars& s, const HeadVars& v, const RuleVars& rule) {
  const Heads y = output_heads(s.q, v.width);
  const Var input = input_of(rule);
  return record_heads("attention", {&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &input},
                      y, attention_into(s, v, y, rule));
}

Tensor attention_weights(const ScoreVars& s, const RuleVars& rule) {
  return attention_weights(s.value(), value_of(rule));
}

Tensor attention_weights(const Scores& scores, const AttentionRule& rule) {
  Backend& backend = scores.q.data.backend();
  const Tensor weights(backend, {weights_size(scores.queries, scores.keys, scores.q.heads)},
                       master_type(scores.q.data.dtype()));
  backend(AttentionWeights{.scores = scores, .rule = rule, .weights = weights});
  return weights;
}

void check_scores(std::string_view op, const Scores& scores, bool own_key) {
  Backend& backend = scores.q.data.backend();
  if (!backend.options().checked) return;
  const Tensor found(backend, {4}, DType::i32);
  backend(FindBadScore{.scores = scores, .own_key = own_key, .found = found});
  const std::vector<std::int32_t> at = found.to_ints();
  LONGHAND_CHECK(at[0] < 0, op, ": the score of query ", at[1], " and key ", at[2], " in head ",
                 at[3], " of sequence ", at[0], " is not finite");
}

}  // namespace longhand
