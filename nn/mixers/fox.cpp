#include "autograd/cumulate.h"
#include "nn/mixing/attention_heads.h"

namespace longhand::nn {
namespace {

/// Forgetting attention (docs/math/forgetting.md): token t has a gate f_t = sigmoid(w . x_t + b) in
/// (0, 1) for each head, and the score of key j for query i gets the sum of ln f over j + 1 .. i.
/// What lies far back fades, as far as the tokens between say so; no other positions are needed.
class FoxHeads final : public AttentionHeads {
 public:
  double bias = 0;
  bool turned = false;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<FoxHeads>(*this); }
  std::string_view kind() const override { return "fox"; }
  void declare(Options& options) override {
    options.flag("rope_in_fox", turned, "1: rotary positions in fox heads too");
    AttentionHeads::declare(options);
    options.number("forget_bias", bias, -100, 100,
                   "b of fox heads' gates sigmoid(w.x + b) at first; 6: little is forgotten");
  }
  std::int64_t cached_numbers() const override { return heads; }
  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    const Scope own = layer.scope() / place.index / "gate";
    weight_ = own.add("weight", {heads, layer.width()}, normal(0.02), true, true);
    bias_ = own.add("bias", {heads}, constant(bias), false);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    ScoreVars scores = plain_scores(operand, pass);
    Var logs = log_gates(*pass.x, weight_, bias_);
    if (pass.cache) {
      const Heads kept{pass.cache->numbers, 0, heads, 1};
      put({logs.value(), 0, heads, 1}, pass.input.segments, kept, *pass.cached);
      logs = kept.data;
    }
    scores.shift = cumulate(logs, pass.cached ? *pass.cached : pass.input.segments);
    return attend(scores, operand.v, pass);
  }
  std::vector<Var> learned() const override { return {weight_, bias_}; }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return turned; }

 private:
  Parameter weight_, bias_;
};

}  // namespace

extern const MixerKind fox_mixer;
constinit const MixerKind fox_mixer = mixer_kind<FoxHeads>("fox");

}  // namespace longhand::nn
