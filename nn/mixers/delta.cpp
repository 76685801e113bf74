#include <cmath>

#include "autograd/convolution.h"
#include "autograd/delta.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "core/contract/convolution.h"
#include "core/contract/delta.h"
#include "core/elementary.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// Delta heads (docs/math/delta.md), known as Gated DeltaNet. The state of a head is a matrix. At
/// each token, the state decays, then the value stored under the token's key is corrected, and then
/// the token's query reads the state. Keys of earlier tokens are not cached. The heads need no
/// positions: a convolution over the last few tokens makes the order of tokens visible.
class DeltaHeads final : public AttentionHeads {
 public:
  bool gate = true, negative = true;
  std::int64_t convolution = 4;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<DeltaHeads>(*this); }
  std::string_view kind() const override { return "delta"; }
  void declare(Options& options) override {
    options.flag("delta_gate", gate,
                 "1: the state of delta heads decays at a rate computed from each token");
    options.flag("delta_negative", negative,
                 "1: the step size beta of delta heads is in (0, 2), which allows negative "
                 "eigenvalues; 0: beta is in (0, 1)");
    options.integer("delta_convolution", convolution, 0, ShortConvolution::most_taps,
                    "kernel size of the convolutions of queries, keys and values in delta heads; "
                    "0: no convolution");
  }
  std::int64_t cached_columns() const override { return 0; }
  std::vector<std::int64_t> cached_memories() const override {
    std::vector<std::int64_t> all{key_heads * width * width};
    if (convolution > 1) all.push_back((convolution - 1) * projection_columns());
    return all;
  }

  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    const Scope own = layer.scope() / place.index / "delta";
    if (convolution > 0) {
      // The initial taps of the convolution are normally distributed, with the standard deviation
      // of the uniform distribution between -1/2 and 1/2.
      taps_ =
          own.add("taps", {convolution, projection_columns()}, normal(std::sqrt(1 / 12.)), false);
    }
    weight_ =
        own.add("weight", {(gate ? 2 : 1) * key_heads, layer.width()}, normal(0.02), true, true);
    correct_ = own.add("correct", {key_heads}, constant(0), false);
    if (gate) {
      fade_ = own.add("fade", {key_heads}, normal(1), false);
      rate_ = own.add("rate", {key_heads}, normal(1), false);
      spread();
    }
    const Tensor ones = layer.constants(std::vector<double>(static_cast<std::size_t>(width), 1.0));
    key_length_ = RmsNorm(ones, layer.epsilon());
    norm_ = RmsNorm(own / "norm", width, layer.epsilon(), false);
  }

  HeadsBackward forward(const MixerPass& pass) const override {
    const Segments& rows = pass.input.segments;
    const std::int64_t tokens = pass.y.rows(), queries = heads * width, keys = key_heads * width;
    const HeadVars all{pass.projection, place().projection, heads + 2 * key_heads, width};
    const auto memory = [&](std::size_t which) {
      return pass.cache ? pass.cache->memories[which] : Tensor();
    };
    Var x;
    if (convolution > 0) {
      const Tensor tail = convolution > 1 ? memory(1) : Tensor();
      x = short_convolution(all, rows, taps_, {.before = tail, .after = tail, .sole_reader = true});
    } else {
      x = copy_heads(all, rows).data;
    }
    x = activate(Activation::silu, x);
    const auto normed = [&](std::int64_t first, std::int64_t count) {
      const Var some = longhand::columns(x, first, count * width);
      const Var each = key_length_(reshape(some, {tokens * count, width}));
      return HeadVars{reshape(each, {tokens, count * width}), 0, count, width};
    };

    const DType master = master_type(pass.y.dtype());
    const Var z = matmul(*pass.x, weight_, {.transpose_b = true, .out = master});
    const Var part = activate(Activation::sigmoid, longhand::columns(z, 0, key_heads) + correct_);
    DeltaVars in{.q = normed(0, heads),
                 .k = normed(queries, key_heads),
                 .v = {longhand::columns(x, queries + keys, keys), 0, key_heads, width},
                 .segments = rows,
                 .beta = negative ? 2.0 * part : part,
                 .decay = {}};
    if (gate) {
      const Var fading = longhand::columns(z, key_heads, key_heads) + fade_;
      // The logarithm of the factor by which the memory shrinks: -exp(rate) softplus(fading), where
      // softplus(z) is -ln sigmoid(-z).
      in.decay = activate(Activation::exp, rate_) * log_sigmoid(-fading);
    }
    const Var y = delta(in, {.before = memory(0), .after = memory(0)});
    const Var each = norm_(reshape(y, {tokens * heads, width}));
    return write_output({reshape(each, {tokens, queries}), 0, heads, width}, rows, output(pass));
  }

  std::vector<Var> learned() const override {
    return {taps_, weight_, correct_, fade_, rate_, norm_.weight};
  }
  double operations_of_pair() const override { return 0; }
  double operations_of_token() const override {
    // Ten products of the state matrix and a vector are counted for each head and token.
    return 20 * static_cast<double>(columns() * width);
  }

 protected:
  bool turns() const override { return false; }

 private:
  /// Initializes rate_, which contains ln A, and fade_, which contains d. The decay of the state is
  /// -A softplus(w . x + d) for a token with the input x, where w is trained. As published, A is
  /// uniform in (0, 16), and ln softplus(d) is uniform between ln 0.001 and ln 0.1. Before this
  /// call, rate_ and fade_ contain normal numbers, which `uniform` maps to uniform numbers.
  void spread() const {
    const auto uniform = [](double normal) {
      return elementary::erfc(-normal / std::sqrt(2.0)) / 2;
    };
    std::vector<double> fade = fade_.value().to_doubles(), rate = rate_.value().to_doubles();
    for (double& d : fade)
      d = elementary::log(elementary::expm1(elementary::power(10, 2 * uniform(d) - 3)));
    for (double& a : rate) a = elementary::log(16 * uniform(a));
    fade_.value().assign(fade);
    rate_.value().assign(rate);
  }

  Parameter taps_, weight_, correct_, fade_, rate_;
  RmsNorm key_length_, norm_;
};

}  // namespace

extern const MixerKind delta_mixer;
constinit const MixerKind delta_mixer = mixer_kind<DeltaHeads>("delta");

}  // namespace longhand::nn
