#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "nn/mixer_core/forgetting.h"

namespace longhand::nn {
namespace {

/// Entmax heads (docs/math/rules.md). Weights can be exactly 0, so attention does not spread over
/// all keys of a long sequence. The scores of token t are multiplied by
///   1 + softplus(a_t) (ln n_t)^(2 tanh(g_t))
/// where a_t and g_t are trained linear functions of the token's input, and n_t is the number of
/// keys that the token sees.
class EntmaxHeads final : public RuleHeads {
 public:
  bool scaled = true, turned = false;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<EntmaxHeads>(*this); }
  std::string_view kind() const override { return "entmax"; }
  void declare(Options& options) override {
    options.flag("rope_in_entmax", turned, "1: rotary positions also apply to entmax heads");
    RuleHeads::declare(options);
    options.flag("entmax_scale", scaled,
                 "1: multiply the scores of entmax heads by a learned function of the token and "
                 "the number of keys");
  }
  void build(MixerScope& layer, const MixerPlace& place) override {
    RuleHeads::build(layer, place);
    if (!scaled) return;
    const Scope own = layer.scope() / place.index / "entmax_scale";
    weight_ = own.add("weight", {2 * heads, layer.width()}, normal(0.02), true, true);
    bias_ = own.add("bias", {2 * heads}, constant(0), false);
  }
  HeadsBackward forward(const MixerPass& pass) const override {
    const Operands operand = operands(pass);
    ScoreVars scores = forgetting_scores(operand, pass);
    if (scaled) scores.multiplier = factors(pass);
    return attend(scores, operand.v, pass, EntmaxVars{});
  }
  std::vector<Var> learned() const override {
    std::vector<Var> all = RuleHeads::learned();
    if (scaled) all.insert(all.end(), {weight_, bias_});
    return all;
  }

 protected:
  bool turns() const override { return turned; }

 private:
  Var factors(const MixerPass& pass) const {
    const Var& x = *pass.x;
    const DType master = master_type(x.value().dtype());
    const Var z = matmul(x, weight_, {.transpose_b = true, .out = master}) + bias_;
    const Var a = longhand::columns(z, 0, heads), g = longhand::columns(z, heads, heads);
    const Var log_log = activate(Activation::log, log_counts_of(pass, heads));
    const Var power = 2.0 * activate(Activation::tanh, g) * log_log;
    // softplus(a) is computed as -ln sigmoid(-a).
    return 1.0 - log_sigmoid(-a) * activate(Activation::exp, power);
  }

  Parameter weight_, bias_;
};

}  // namespace

extern const MixerKind entmax_mixer;
constinit const MixerKind entmax_mixer = mixer_kind<EntmaxHeads>("entmax");

}  // namespace longhand::nn
