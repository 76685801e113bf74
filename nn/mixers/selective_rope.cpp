#include <cmath>
#include <cstddef>
#include <vector>

#include "autograd/convolution.h"
#include "autograd/cumulate.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "autograd/rope.h"
#include "core/contract/convolution.h"
#include "core/error.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// Softmax heads with data-dependent rotation (docs/math/selective_rope.md). The angles of a token
/// are computed from this token and the few tokens before it. The query and key of a token are
/// rotated by the sum of the angles of all tokens up to it. A score therefore depends on the angles
/// of the tokens between key and query. If all tokens have equal angles, these heads are the same
/// as heads with rotary positions.
class SelectiveRopeHeads final : public AttentionHeads {
 public:
  std::int64_t rank = 16, convolution = 4;
  double base = 500000;
  bool gate = true;

  std::unique_ptr<Mixer> clone() const override {
    return std::make_unique<SelectiveRopeHeads>(*this);
  }
  std::string_view kind() const override { return "selective_rope"; }
  void declare(Options& options) override {
    options.integer("angle_rank", rank, 1, 1 << 12,
                    "rank of the projection that computes the angles of selective_rope heads");
    options.integer(
        "angle_convolution", convolution, 1, ShortConvolution::most_taps,
        "kernel size of the convolution that computes the angles of selective_rope heads");
    options.number("angle_base", base, 1, 1e12,
                   "base X of selective_rope heads, which multiply the angle of pair p by X^(-2p / "
                   "head width)");
    options.flag("angle_gate", gate,
                 "1: selective_rope heads multiply the angles of a token by a gate computed from "
                 "this token");
  }
  void check() const override {
    LONGHAND_CHECK(key_heads == heads,
                   "selective_rope heads: expected as many key heads as heads (", heads, "), got ",
                   key_heads);
    LONGHAND_CHECK(width % 2 == 0, "selective_rope heads: expected an even width, got ", width);
  }
  std::vector<std::int64_t> cached_memories() const override {
    std::vector<std::int64_t> all{angles()};
    if (convolution > 1) all.push_back((convolution - 1) * angles());
    return all;
  }

  void build(MixerScope& layer, const MixerPlace& place) override {
    AttentionHeads::build(layer, place);
    LONGHAND_CHECK(layer.width() % heads == 0,
                   "selective_rope heads: expected a number of heads that divides the width ",
                   layer.width(), ", got ", heads);
    const Scope own = layer.scope() / place.index / "angle";
    // The standard deviation of the uniform distribution on [-1 / sqrt(in), 1 / sqrt(in)], for
    // weights with `in` inputs per output.
    const auto deviation = [](std::int64_t in) {
      return std::sqrt(1 / (3.0 * static_cast<double>(in)));
    };
    down_ = own.add("down", {rank, layer.width()}, normal(deviation(layer.width())), true, true);
    up_ = own.add("up", {angles(), rank}, normal(deviation(rank)), true, true);
    if (convolution > 1) {
      taps_ = own.add("taps", {convolution, angles()}, normal(deviation(convolution)), false);
    }
    if (gate) {
      weight_ =
          own.add("weight", {heads, layer.width()}, normal(deviation(layer.width())), true, true);
      bias_ = own.add("bias", {heads}, constant(0), false);
    }
    const std::vector<double> of_head = RopeOptions{.base = base}.frequencies(width);
    std::vector<double> speeds;
    for (std::int64_t h = 0; h < heads; ++h) {
      speeds.insert(speeds.end(), of_head.begin(), of_head.end());
    }
    speeds_ = layer.constants(speeds);
    part_ = layer.width() / heads;
    length_ = RmsNorm(layer.constants(std::vector<double>(static_cast<std::size_t>(part_), 1.0)),
                      layer.epsilon());
  }

  HeadsBackward forward(const MixerPass& pass) const override {
    const Segments& rows = pass.input.segments;
    const std::int64_t first = place().projection, queries = heads * width;
    const HeadVars both = copy_heads({pass.projection, first, 2 * heads, width}, rows);
    const Var turned =
        rotate_in_place(both.data, angles_of(pass), {.heads = 2 * heads, .width = width});
    const Operands operand = with_cache({{turned, 0, heads, width},
                                         {turned, queries, heads, width},
                                         {pass.projection, first + 2 * queries, heads, width}},
                                        pass);
    return attend(plain_scores(operand, pass), operand.v, pass);
  }

  std::vector<Var> learned() const override { return {down_, up_, taps_, weight_, bias_}; }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 protected:
  bool turns() const override { return false; }  // rotation does not depend on positions

 private:
  std::int64_t angles() const { return heads * width / 2; }

  /// The angles by which the query and key of each token are rotated, [tokens, heads * width / 2].
  /// An angle is the sum of the angles computed for all tokens of the sequence up to this token.
  Var angles_of(const MixerPass& pass) const {
    const Segments& rows = pass.input.segments;
    const std::int64_t tokens = pass.y.rows();
    const DType master = master_type(pass.y.dtype());
    const auto memory = [&](std::size_t which) {
      return pass.cache ? pass.cache->memories[which] : Tensor();
    };
    // The input is divided into one part per head, and each part is normalized to length 1.
    const Var parts = length_(reshape(*pass.x, {tokens * heads, part_}));
    const Var x =
        (1 / std::sqrt(static_cast<double>(part_))) * reshape(parts, {tokens, part_ * heads});
    const Var low = matmul(x, down_, {.transpose_b = true});
    Var added = matmul(low, up_, {.transpose_b = true, .out = master});
    if (convolution > 1) {
      added = short_convolution({added, 0, heads, width / 2}, rows, taps_,
                                {.before = memory(1), .after = memory(1)});
    }
    if (gate) {
      const Var open = activate(Activation::sigmoid,
                                matmul(x, weight_, {.transpose_b = true, .out = master}) + bias_);
      added =
          reshape(reshape(added, {tokens, heads, width / 2}) * reshape(open, {tokens, heads, 1}),
                  {tokens, angles()});
    }
    added = added * Var(speeds_);
    return pass.cache ? cumulate_on(added, rows, memory(0)) : cumulate(added, rows);
  }

  Parameter down_, up_, taps_, weight_, bias_;
  Tensor speeds_;
  std::int64_t part_ = 0;
  RmsNorm length_;
};

}  // namespace

extern const MixerKind selective_rope_mixer;
constinit const MixerKind selective_rope_mixer = mixer_kind<SelectiveRopeHeads>("selective_rope");

}  // namespace longhand::nn
