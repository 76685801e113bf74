#include "nn/mixer_core/forgetting.h"

namespace longhand::nn {
namespace {

/// Sigmoid heads (docs/math/rules.md): the weight of a key is the sigmoid of (its score - ln n),
/// where n is the number of keys that the token sees. The weights of a token need not sum to 1, so
/// a token can attend to nothing.
class SigmoidHeads final : public RuleHeads {
 public:
  std::unique_ptr<Mixer> clone() const override { return std::make_unique<SigmoidHeads>(*this); }
  std::string_view kind() const override { return "sigmoid"; }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    return attend(forgetting_scores(operand, pass), operand.v, pass, SigmoidVars{});
  }
};

}  // namespace

extern const MixerKind sigmoid_mixer;
constinit const MixerKind sigmoid_mixer = mixer_kind<SigmoidHeads>("sigmoid");

}  // namespace longhand::nn
