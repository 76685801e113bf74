#include "nn/mixers/softmax.h"

#include "autograd/reinforce.h"

namespace longhand::nn {

void SoftmaxHeads::declare(Options& options) {
  AttentionHeads::declare(options);
  scores.declare(options);
  options.integer("window", window, 0, 1 << 24,
                  "number of keys that a query of softmax or biased heads sees; 0: all keys");
  options.number("reinforce", reinforce, 0, 1,
                 "attention weight above which softmax heads increase their attention to the "
                 "task's reference tokens; such a model cannot be trained; none: no increase");
}

void SoftmaxHeads::build(MixerScope& layer, const MixerPlace& place) {
  AttentionHeads::build(layer, place);
  beta_ = scores.build(layer);
  if (!reinforce) return;
  const Scope own = layer.scope() / place.index;
  reinforcement_ = own.add("reinforcement", {heads}, constant(0), false);
  reinforcement_.freeze();
}

HeadsBackward SoftmaxHeads::forward(const MixerPass& pass) const {
  const Operands operand = operands(pass);
  ScoreVars vars = scores.scores(operand.q, operand.k, pass, beta_);
  vars.window = window;
  if (pass.view) pass.view->scores = vars.value();
  if (!reinforce) return attention_into(vars, operand.v, output(pass));
  const Reinforcement by{
      .pairs = pass.input.reference, .amounts = reinforcement_.value(), .threshold = *reinforce};
  if (pass.view) pass.view->reinforcement = by;
  reinforced_attention_into(vars, operand.v, by, output(pass));
  return {};
}

std::vector<Parameter> SoftmaxHeads::added() const {
  if (!reinforcement_) return {};
  return {reinforcement_};
}

std::vector<LearnedNumber> SoftmaxHeads::learned_numbers() const {
  if (!beta_) return {};
  return {{.name = "beta", .value = beta_.value().item()}};
}

std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads) { return {{heads.clone()}}; }

extern const MixerKind softmax_mixer;
constinit const MixerKind softmax_mixer = mixer_kind<SoftmaxHeads>("softmax");

}  // namespace longhand::nn
