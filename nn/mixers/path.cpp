#include <cmath>

#include "autograd/composed_attention.h"
#include "autograd/convolution.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "core/contract/convolution.h"
#include "core/error.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// Maximum number of scores of one sequence, over all heads of a layer: one GiB of f32.
constexpr std::int64_t most_path_scores = 1 << 28;

/// PaTH heads (docs/math/path.md): softmax attention in which each token defines a reflection. To
/// compute a score, the reflections of all tokens between key and query are applied to the query.
/// Relative position thus depends on the contents of the tokens in between, not on their number.
/// The mixer is composed of other operations, so every [tokens, tokens] matrix is in memory.
class PathHeads final : public AttentionHeads {
 public:
  std::int64_t rank = 32, convolution = 3;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<PathHeads>(*this); }
  std::string_view kind() const override { return "path"; }
  void declare(Options& options) override {
    AttentionHeads::declare(options);
    options.integer("path_rank", rank, 1, 1 << 12,
                    "rank of the projection that computes the reflections of PaTH heads");
    options.integer("path_convolution", convolution, 1, ShortConvolution::most_taps,
                    "kernel size of the convolution that computes the reflections of PaTH heads");
  }
  void check() const override {
    LONGHAND_CHECK(key_heads == heads, "path heads: expected as many key heads as heads (", heads,
                   "), got ", key_heads);
  }
  std::int64_t cached_columns() const override { return 3 * columns(); }
  std::int64_t cached_numbers() const override { return heads; }
  std::vector<std::int64_t> cached_memories() const override {
    if (convolution == 1) return {};
    return {(convolution - 1) * columns()};
  }
  std::optional<std::int64_t> most_tokens() const override {
    return static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(most_path_scores) / static_cast<double>(heads)));
  }
  // The shapes of tensors depend on the lengths of the sequences, so training steps cannot be
  // recorded and replayed.
  bool repeats() const override { return false; }

  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    const Scope own = layer.scope() / place.index / "path";
    const auto deviation = [](std::int64_t in) { return 1 / std::sqrt(static_cast<double>(in)); };
    down_ = own.add("down", {rank, layer.width()}, normal(deviation(layer.width())), true, true);
    up_ = own.add("up", {columns(), rank}, normal(deviation(rank)), true, true);
    // The initial taps of the convolution are normally distributed, with the standard deviation of
    // the uniform distribution on [-s, s], where s = 1 / sqrt(convolution).
    taps_ = own.add("taps", {convolution, columns()}, normal(deviation(3 * convolution)), false);
    weight_ = own.add("weight", {heads, layer.width()}, normal(0.02), true, true);
    bias_ = own.add("bias", {heads}, constant(0), false);
    const Tensor ones = layer.constants(std::vector<double>(static_cast<std::size_t>(width), 1.0));
    length_ = RmsNorm(ones, layer.epsilon());
  }

  HeadsBackward forward(const MixerPass& pass) const override {
    const Segments& rows = pass.input.segments;
    const std::int64_t tokens = pass.y.rows();
    const DType master = master_type(pass.y.dtype());
    const auto all_heads = [&](const Var& x) { return HeadVars{x, 0, heads, width}; };
    const Tensor tail = pass.cache && convolution > 1 ? pass.cache->memories[0] : Tensor();

    const Var low = matmul(*pass.x, down_, {.transpose_b = true});
    const Var mixed = short_convolution(all_heads(matmul(low, up_, {.transpose_b = true})), rows,
                                        taps_, {.before = tail, .after = tail});
    const Var each = length_(reshape(activate(Activation::silu, mixed), {tokens * heads, width}));
    const double unit = 1 / std::sqrt(static_cast<double>(width));
    PathVars in{
        .q = {},
        .k = {},
        .v = {},
        .w = all_heads(unit * reshape(each, {tokens, columns()})),
        .beta =
            2.0 * activate(Activation::sigmoid,
                           matmul(*pass.x, weight_, {.transpose_b = true, .out = master}) + bias_),
        .queries = rows,
        .keys = cached_segments(pass)};
    const Operands operand = operands(pass);
    if (pass.cache) {
      const HeadVars kept{pass.cache->keys_values, 2 * columns(), heads, width};
      const HeadVars numbers{pass.cache->numbers, 0, heads, 1};
      put(in.w.value(), rows, kept.value(), *pass.cached);
      put({in.beta.value(), 0, heads, 1}, rows, numbers.value(), *pass.cached);
      in.w = kept;
      in.beta = numbers.data;
      in.q = operand.q;
      in.k = operand.k;
      in.v = operand.v;
    } else {
      in.q = copy_heads(operand.q, rows);
      in.k = copy_heads(operand.k, rows);
      in.v = copy_heads(operand.v, rows);
    }
    return write_output(all_heads(composed_path(in)), rows, output(pass));
  }

  std::vector<Var> learned() const override { return {down_, up_, taps_, weight_, bias_}; }
  // The count includes the products that compute the reflections.
  double operations_of_pair() const override { return 30 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return false; }

 private:
  Parameter down_, up_, taps_, weight_, bias_;
  RmsNorm length_;
};

}  // namespace

extern const MixerKind path_mixer;
constinit const MixerKind path_mixer = mixer_kind<PathHeads>("path");

}  // namespace longhand::nn
