#include "nn/mixers/chacal.h"

#include "autograd/chacal.h"
#include "autograd/elementwise.h"
#include "core/elementary.h"
#include "core/error.h"

namespace longhand::nn {

void ChacalHeads::declare(Options& options) {
  options.number("gamma", gamma, 0, 1,
                 "gamma of ChaCAL heads, or its initial value if it is learned");
  options.choice("learned_gamma", learned_gamma,
                 "learn gamma of ChaCAL heads: no, layer or head; layer: one gamma per layer; "
                 "head: one per head");
  AttentionHeads::declare(options);
  scores.declare(options);
}

void ChacalHeads::check() const {
  const bool learned = learned_gamma != Learned::no;
  LONGHAND_CHECK(gamma >= 0 && gamma < 1 && (gamma > 0 || !learned), "gamma: expected ",
                 learned ? "0 < gamma < 1 for a learned gamma" : "0 <= gamma < 1", ", got ", gamma);
}

void ChacalHeads::build(MixerScope& layer, const MixerPlace& place) {
  AttentionHeads::build(layer, place);
  if (learned_gamma != Learned::no) {
    const std::int64_t numbers = learned_gamma == Learned::head ? place.heads_alike : 1;
    logit_ = layer.shared("gamma_logit", {numbers}, elementary::log(gamma / (1 - gamma)));
  }
  beta_ = scores.build(layer);
  fixed_gamma_ = layer.constants({&gamma, 1});
}

Var ChacalHeads::gammas() const {
  if (!logit_) return fixed_gamma_;
  const Var all = activate(Activation::sigmoid, logit_);
  return all.value().size() == 1 ? all : slice(all, place().heads_before, heads);
}

HeadsBackward ChacalHeads::forward(const MixerPass& pass) const {
  const Operands operand = operands(pass);
  const ScoreVars vars = scores.scores(operand.q, operand.k, pass, beta_);
  const Var g = gammas();
  if (pass.view) {
    pass.view->scores = vars.value();
    pass.view->gamma = g.value();
  }
  const Heads y = output(pass);
  const Heads earlier = pass.cache ? Heads{pass.cache->outputs, 0, heads, width} : Heads{};
  HeadsBackward backward = chacal_into(vars, operand.v, g, y, earlier);
  if (earlier) {
    pass.y.backend()(Append{.x = y, .from = pass.input.segments, .y = earlier, .to = *pass.cached});
  }
  return backward;
}

std::vector<LearnedNumber> ChacalHeads::learned_numbers() const {
  std::vector<LearnedNumber> numbers;
  if (logit_) {
    const std::vector<double> gammas = activate(Activation::sigmoid, logit_).value().to_doubles();
    if (learned_gamma == Learned::layer) {
      numbers.push_back({.name = "gamma", .value = gammas[0]});
    } else {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t head = place().heads_before + h;
        numbers.push_back({"gamma", head, gammas[static_cast<std::size_t>(head)]});
      }
    }
  }
  if (beta_) numbers.push_back({.name = "beta", .value = beta_.value().item()});
  return numbers;
}

extern const MixerKind chacal_mixer;
constinit const MixerKind chacal_mixer = mixer_kind<ChacalHeads>("chacal");

}  // namespace longhand::nn
