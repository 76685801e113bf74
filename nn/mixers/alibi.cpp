#include "autograd/combine.h"
#include "autograd/cumulate.h"
#include "core/elementary.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// ALiBi heads (docs/math/forgetting.md). A score decreases by m_h = 2^(-8 h / H) for each token of
/// distance between query and key. H is the number of ALiBi heads of the layer, and h = 1 .. H is
/// the number of the head. This is forgetting attention with the constant gates exp(-m_h).
class AlibiHeads final : public AttentionHeads {
 public:
  std::unique_ptr<Mixer> clone() const override { return std::make_unique<AlibiHeads>(*this); }
  std::string_view kind() const override { return "alibi"; }
  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    std::vector<double> logs;
    for (std::int64_t h = 1; h <= heads; ++h) {
      const double share =
          static_cast<double>(place.heads_before + h) / static_cast<double>(place.heads_alike);
      logs.push_back(-elementary::power(2, -8 * share));
    }
    logs_ = layer.constants(logs);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    ScoreVars scores = plain_scores(operand, pass);
    const Tensor& keys = operand.k.data.value();
    const Var none = Tensor::zeros(keys.backend(), {keys.rows(), heads}, logs_.value().dtype());
    scores.decay = cumulate(add(none, logs_), pass.cached ? *pass.cached : pass.input.segments);
    return attend(scores, operand.v, pass);
  }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return false; }

 private:
  Var logs_;  // -m_h for each head h: the logarithm of the head's constant gate
};

}  // namespace

extern const MixerKind alibi_mixer;
constinit const MixerKind alibi_mixer = mixer_kind<AlibiHeads>("alibi");

}  // namespace longhand::nn
