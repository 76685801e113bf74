#include "nn/mixers/softmax.h"

namespace longhand::nn {

void SoftmaxHeads::declare(Options& options) {
  AttentionHeads::declare(options);
  scores.declare(options);
  options.integer("window", window, 0, 1 << 24, "keys that a softmax head sees; 0: all");
}

void SoftmaxHeads::build(MixerScope& layer, const MixerPlace& place) {
  AttentionHeads::build(layer, place);
  beta_ = scores.build(layer);
}

HeadsBackward SoftmaxHeads::forward(const MixerPass& pass) const {
  const Operands operand = operands(pass);
  ScoreVars vars = scores.scores(operand.q, operand.k, pass, beta_);
  vars.window = window;
  if (pass.view) pass.view->weights = attention_weights(vars);
  return attention_into(vars, operand.v, output(pass));
}

std::vector<LearnedNumber> SoftmaxHeads::learned_numbers() const {
  if (!beta_) return {};
  return {{.name = "beta", .value = beta_.value().item()}};
}

std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads) { return {{heads.clone()}}; }

extern const MixerKind softmax_mixer;
constinit const MixerKind softmax_mixer = mixer_kind<SoftmaxHeads>("softmax");

}  // namespace longhand::nn
