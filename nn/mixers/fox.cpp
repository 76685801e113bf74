#include "nn/mixer_core/forgetting.h"

namespace longhand::nn {
namespace {

/// Forgetting attention (docs/math/forgetting.md): softmax heads in which each token has a gate, a
/// number in (0, 1). Before normalization, the weight of a key is multiplied by the gates of all
/// tokens after this key, up to the query. The heads need no positions.
class FoxHeads final : public AttentionHeads {
 public:
  bool turned = false;
  ForgetGates gates;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<FoxHeads>(*this); }
  std::string_view kind() const override { return "fox"; }
  void declare(Options& options) override {
    options.flag("rope_in_fox", turned, "1: rotary positions also apply to fox heads");
    AttentionHeads::declare(options);
    gates.declare(options);
  }
  std::int64_t cached_numbers() const override { return heads; }
  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    gates.build(layer.scope() / place.index / "gate", heads, layer.width());
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    ScoreVars scores = plain_scores(operand, pass);
    scores.decay = gates.shift(pass);
    return attend(scores, operand.v, pass);
  }
  std::vector<Var> learned() const override { return gates.learned(); }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return turned; }
};

}  // namespace

extern const MixerKind fox_mixer;
constinit const MixerKind fox_mixer = mixer_kind<FoxHeads>("fox");

}  // namespace longhand::nn
