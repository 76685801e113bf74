#include "nn/mixer_core/forgetting.h"

namespace longhand::nn {
namespace {

/// Stick-breaking heads (docs/math/rules.md): a token has a total weight of 1 to distribute over
/// its keys. From the nearest key back to the first, a key with score s receives the share
/// sigmoid(s) of the weight that remains. The nearest key with a high score dominates, and without
/// high scores, a token attends to nothing. Positions are not needed.
class StickHeads final : public RuleHeads {
 public:
  bool turned = false;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<StickHeads>(*this); }
  std::string_view kind() const override { return "stick"; }
  void declare(Options& options) override {
    options.flag("rope_in_stick", turned, "1: rotary positions also apply to stick heads");
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
