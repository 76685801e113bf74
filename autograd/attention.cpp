#include "autograd/attention.h"

#include <cmath>

#include "autograd/tape.h"
#include "core/backend.h"
#include "core/error.h"

namespace longhand {
namespace {

/// Allocates the tensors that the forward pass of a rule saves for the backward pass. Shapes and
/// types are derived from the output y.
struct Saving {
  const Heads& y;

  Tensor by_row() const {
    return Tensor(y.data.backend(), {y.data.rows(), y.heads}, master_type(y.data.dtype()));
  }
  Heads by_entry() const {
    const Tensor data(y.data.backend(), {y.data.rows(), y.heads * y.width}, y.data.dtype());
    return {data, 0, y.heads, y.width};
  }
  Heads residue() const { return y.data.dtype() == DType::bf16 ? by_entry() : Heads{}; }

  void operator()(SoftmaxRule& rule) const { rule.log_denominator = by_row(); }
  void operator()(StickBreakingRule& rule) const { rule.residue = residue(); }
  void operator()(TraRule& rule) const {
    rule.log_denominator = by_row();
    rule.residue = residue();
  }
  void operator()(EntmaxRule& rule) const {
    rule.threshold = by_row();
    rule.root_mean = by_entry();
  }
};

AttentionRule value(const SoftmaxVars& rule) { return SoftmaxRule{.sink = rule.sink.value()}; }
AttentionRule value(const StickBreakingVars&) { return StickBreakingRule{}; }
AttentionRule value(const TraVars& rule) { return TraRule{.count_bias = rule.count_bias.value()}; }
AttentionRule value(const EntmaxVars&) { return EntmaxRule{}; }

/// The tensor of a rule that can require a gradient. It may be empty.
Var own(const SoftmaxVars& rule) { return rule.sink; }
Var own(const StickBreakingVars&) { return {}; }
Var own(const TraVars& rule) { return rule.count_bias; }
Var own(const EntmaxVars&) { return {}; }

/// The struct for the backward pass of a rule. `target` receives the gradient of own(rule).
AttentionGradient gradient(const SoftmaxRule& rule, const Heads& y, const Target& target) {
  return SoftmaxGradient{
      .sink = rule.sink, .y = y, .log_denominator = rule.log_denominator, .dsink = target};
}
AttentionGradient gradient(const StickBreakingRule& rule, const Heads& y, const Target&) {
  return StickBreakingGradient{.y = y, .residue = rule.residue};
}
AttentionGradient gradient(const TraRule& rule, const Heads& y, const Target& target) {
  return TraGradient{.count_bias = rule.count_bias,
                     .y = y,
                     .residue = rule.residue,
                     .log_denominator = rule.log_denominator,
                     .dcount_bias = target};
}
AttentionGradient gradient(const EntmaxRule& rule, const Heads&, const Target&) {
  return EntmaxGradient{.threshold = rule.threshold, .root_mean = rule.root_mean};
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
          .math = math};
}

AttentionRule value_of(const RuleVars& rule) {
  return std::visit([](const auto& r) { return value(r); }, rule);
}

HeadsBackward attention_into(const ScoreVars& s, const HeadVars& v, const Heads& y,
                             const RuleVars& rule_vars) {
  const Scores scores = s.value();
  AttentionRule rule = value_of(rule_vars);
  const Var own_tensor = std::visit([](const auto& r) { return own(r); }, rule_vars);
  check_scores("attention", scores, !std::holds_alternative<StickBreakingRule>(rule));
  const bool wanted =
      recorded({&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &own_tensor});
  if (wanted) std::visit(Saving{y}, rule);
  y.data.backend()(Attention{.scores = scores, .rule = rule, .v = v.value(), .y = y});
  if (!wanted) return {};

  // Entmax does not need y in the backward pass, so y may be freed before.
  const Heads kept = std::holds_alternative<EntmaxRule>(rule) ? Heads{} : y;
  return [scores, rule, q = s.q, k = s.k, v, sinks = ScoreSinks(s), own_sink = own_tensor.sink(),
          kept](const Heads& dy, bool assign) {
    const HeadTargets d = targets(q, k, v, assign);
    dy.data.backend()(AttentionBackward{
        .scores = scores,
        .rule =
            std::visit([&](const auto& r) { return gradient(r, kept, own_sink.target()); }, rule),
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
  const Var own_tensor = std::visit([](const auto& r) { return own(r); }, rule);
  return record_heads("attention",
                      {&s.q.data, &s.k.data, &v.data, &s.multiplier, &s.decay, &own_tensor}, y,
                      attention_into(s, v, y, rule));
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
