#include "nn/mixer_core/forgetting.h"

namespace longhand::nn {
namespace {

/// Threshold relative attention (docs/math/rules.md): a softmax over the positive scores only. The
/// score s of a key is replaced by
///   s + n ln sigmoid(w . x + b)
/// where n is the number of positive scores from this key to the querying token, x is the input of
/// the querying token, and w and b are trained. Distance is thus measured in keys with positive
/// scores. Queries and keys are normalized.
class TraHeads final : public RuleHeads {
 public:
  double bias = 0;

  HeadNorm default_head_norm() const override { return HeadNorm::rms_fixed; }
  std::unique_ptr<Mixer> clone() const override { return std::make_unique<TraHeads>(*this); }
  std::string_view kind() const override { return "tra"; }
  void declare(Options& options) override {
    RuleHeads::declare(options);
    options.number("tra_bias", bias, -100, 100,
                   "initial b of tra heads, which add n ln sigmoid(w.x + b) to a score, where n is "
                   "the number of positive scores from its key to the query");
  }
  void build(MixerScope& layer, const MixerPlace& place) override {
    RuleHeads::build(layer, place);
    const Scope own = layer.scope() / place.index / "pull";
    weight_ = own.add("weight", {heads, layer.width()}, normal(0.02), true, true);
    bias_ = own.add("bias", {heads}, constant(bias), false);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    const TraVars rule{log_gates(*pass.x, weight_, bias_)};
    return attend(forgetting_scores(operand, pass), operand.v, pass, rule);
  }
  std::vector<Var> learned() const override {
    std::vector<Var> all = RuleHeads::learned();
    all.insert(all.end(), {weight_, bias_});
    return all;
  }

 protected:
  bool turns() const override { return false; }

 private:
  Parameter weight_, bias_;
};

}  // namespace

extern const MixerKind tra_mixer;
constinit const MixerKind tra_mixer = mixer_kind<TraHeads>("tra");

}  // namespace longhand::nn
