#include "nn/mixer_core/forgetting.h"

#include "autograd/cumulate.h"

namespace longhand::nn {

void ForgetGates::declare(Options& options) {
  options.number(
      "forget_bias", bias, -100, 100,
      "initial b of the forget gates sigmoid(w.x + b); a large b, such as 6, forgets little");
}

void ForgetGates::build(const Scope& own, std::int64_t heads, std::int64_t width) {
  weight_ = own.add("weight", {heads, width}, normal(0.02), true, true);
  bias_ = own.add("bias", {heads}, constant(bias), false);
}

Var ForgetGates::shift(const MixerPass& pass) const {
  Var logs = log_gates(*pass.x, weight_, bias_);
  const Segments& own = pass.input.segments;
  if (!pass.cache) return cumulate(logs, own);
  const std::int64_t heads = logs.value().columns();
  const Heads kept{pass.cache->numbers, 0, heads, 1};
  put({logs.value(), 0, heads, 1}, own, kept, *pass.cached);
  return cumulate(kept.data, *pass.cached);
}

void RuleHeads::declare(Options& options) {
  AttentionHeads::declare(options);
  options.flag("forgets", forgets,
               "1: entmax, sigmoid, stick and tra heads have forget gates, as fox heads do");
  gates.declare(options);
}

void RuleHeads::build(MixerScope& layer, const MixerPlace& place) {
  AttentionHeads::build(layer, place);
  if (forgets) gates.build(layer.scope() / place.index / "gate", heads, layer.width());
}

ScoreVars RuleHeads::forgetting_scores(const Operands& operand, const MixerPass& pass) const {
  ScoreVars scores = plain_scores(operand, pass);
  if (forgets) scores.decay = gates.shift(pass);
  return scores;
}

}  // namespace longhand::nn
