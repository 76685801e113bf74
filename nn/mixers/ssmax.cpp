#include "autograd/combine.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// SSMax heads (docs/math/attention.md): the scores are multiplied by s_h ln n, where n is the
/// number of visible keys and s_h is a trained number of head h. This keeps the weights of a head
/// from becoming flatter as n grows.
class SsmaxHeads final : public AttentionHeads {
 public:
  // Initial value of the trained number s. Scores are multiplied by s ln n for n visible keys. The
  // initial value is 1 / (mean of ln n for n up to 1024), so the heads start close to plain
  // softmax.
  double first = 0.168;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<SsmaxHeads>(*this); }
  std::string_view kind() const override { return "ssmax"; }
  void declare(Options& options) override {
    AttentionHeads::declare(options);
    options.number("ssmax", first, -1e6, 1e6,
                   "initial s of ssmax heads, which multiply scores by s ln n, where n is the "
                   "number of keys; each head learns its own s");
  }
  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    s_ = (layer.scope() / place.index).add("ssmax", {heads}, constant(first), false);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    ScoreVars scores = plain_scores(operand, pass);
    scores.multiplier = multiply(log_counts_of(pass, heads), s_);
    return attend(scores, operand.v, pass);
  }
  std::vector<Var> learned() const override { return {s_}; }
  std::vector<LearnedNumber> learned_numbers() const override {
    return numbers_of_heads("ssmax", s_);
  }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 private:
  Parameter s_;
};

}  // namespace

extern const MixerKind ssmax_mixer;
constinit const MixerKind ssmax_mixer = mixer_kind<SsmaxHeads>("ssmax");

}  // namespace longhand::nn
