#include "autograd/deltaformer.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// DeltaFormer heads (docs/math/deltaformer.md): softmax attention over corrected values. To
/// correct a token's value, a part of the values of earlier tokens with similar keys is subtracted.
class DeltaformerHeads final : public AttentionHeads {
 public:
  bool turned = false;
  double erase = 0;

  std::unique_ptr<Mixer> clone() const override {
    return std::make_unique<DeltaformerHeads>(*this);
  }
  std::string_view kind() const override { return "deltaformer"; }
  void declare(Options& options) override {
    AttentionHeads::declare(options);
    options.flag("rope_in_deltaformer", turned,
                 "1: rotary positions also apply to DeltaFormer heads");
    options.number("deltaformer_bias", erase, -100, 100,
                   "initial b of DeltaFormer heads, where a token subtracts sigmoid(w.x + b) times "
                   "the retrieved value from its own value");
  }

  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    const Scope own = layer.scope() / place.index / "erase";
    weight_ = own.add("weight", {key_heads, layer.width()}, normal(0.02), true, true);
    bias_ = own.add("bias", {key_heads}, constant(erase), false);
  }

  HeadsBackward forward(const MixerPass& pass) const override {
    const Segments& rows = pass.input.segments;
    Operands operand = operands(pass);
    const DType master = master_type(pass.y.dtype());
    const Var part =
        activate(Activation::sigmoid,
                 matmul(*pass.x, weight_, {.transpose_b = true, .out = master}) + bias_);
    // The correction of values uses the keys twice, as queries and as keys. The keys are copied,
    // because each use needs a gradient tensor of its own.
    if (!pass.cache) operand.k = copy_heads(operand.k, rows);
    const HeadVars own_keys =
        pass.cache ? operand.own_k : HeadVars{1.0 * operand.k.data, 0, key_heads, width};
    const DeltaFormerVars among_keys{.q = own_keys,
                                     .k = operand.k,
                                     .v = pass.cache ? operand.v : copy_heads(operand.v, rows),
                                     .gain = -part,
                                     .queries = rows,
                                     .keys = cached_segments(pass)};
    const Heads earlier = pass.cache ? operand.v.value() : Heads{};
    HeadVars left{deltaformer(among_keys, earlier), 0, key_heads, width};
    if (pass.cache) {
      // The cache stores the corrected values.
      put(left.value(), rows, earlier, *pass.cached);
      left = operand.v;
    }
    return attend(plain_scores(operand, pass), left, pass);
  }

  std::vector<Var> learned() const override { return {weight_, bias_}; }
  /// Counts twice the operations of softmax attention.
  double operations_of_pair() const override { return 28 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return turned; }

 private:
  Parameter weight_, bias_;
};

}  // namespace

extern const MixerKind deltaformer_mixer;
constinit const MixerKind deltaformer_mixer = mixer_kind<DeltaformerHeads>("deltaformer");

}  // namespace longhand::nn
