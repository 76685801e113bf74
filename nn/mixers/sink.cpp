#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// Softmax heads with a sink (docs/math/attention.md): exp(b) is added to the softmax denominator
/// of each row, so that a token can attend to nothing. b is a trained number of each head, or the
/// same constant for all heads. With the constant b = 0 this is known as softmax1.
class SinkHeads final : public AttentionHeads {
 public:
  double sink = 0;
  bool learned_sink = false;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<SinkHeads>(*this); }
  std::string_view kind() const override { return "sink"; }
  void declare(Options& options) override {
    AttentionHeads::declare(options);
    options.number("sink", sink, -1e4, 1e4,
                   "b of sink heads, which add exp(b) to the softmax denominator; initial value if "
                   "b is learned");
    options.flag("learned_sink", learned_sink, "1: learn b of sink heads, one per head");
  }
  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    if (learned_sink) {
      learned_ = (layer.scope() / place.index).add("sink", {heads}, constant(sink), false);
    } else {
      fixed_ = layer.constants(std::vector<double>(static_cast<std::size_t>(heads), sink));
    }
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    const SoftmaxVars rule{learned_ ? learned_.var() : fixed_};
    return attend(plain_scores(operand, pass), operand.v, pass, rule);
  }
  std::vector<Var> learned() const override { return {learned_}; }
  std::vector<LearnedNumber> learned_numbers() const override {
    return numbers_of_heads("sink", learned_);
  }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 private:
  Parameter learned_;
  Var fixed_;
};

}  // namespace

extern const MixerKind sink_mixer;
constinit const MixerKind sink_mixer = mixer_kind<SinkHeads>("sink");

}  // namespace longhand::nn
