#include "nn/mixing/forgetting.h"

namespace longhand::nn {
namespace {

/// Stick-breaking heads (docs/math/rules.md): from the nearest key to the first, each key receives
/// the share sigmoid(s) of the weight that nearer keys have left. The nearest agreeing key
/// dominates. Positions are not needed, and a token without an agreeing key attends to nothing.
class StickHeads final : public RuleHeads {
 public:
  bool turned = false;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<StickHeads>(*this); }
  std::string_view kind() const override { return "stick"; }
  void declare(Options& options) override {
    options.flag("rope_in_stick", turned, "1: rotary positions in stick heads too");
    RuleHeads::declare(options);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    return attend(forgetting_scores(operand, pass), operand.v, pass, StickBreakingVars{});
  }

 protected:
  bool turns() const override { return turned; }
};

}  // namespace

extern const MixerKind stick_mixer;
constinit const MixerKind stick_mixer = mixer_kind<StickHeads>("stick");

}  // namespace longhand::nn
