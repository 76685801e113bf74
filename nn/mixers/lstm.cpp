#include <algorithm>
#include <cmath>

#include "autograd/elementwise.h"
#include "autograd/lstm.h"
#include "core/error.h"
#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {
namespace {

/// LSTM heads (docs/math/lstm.md). A recurrent state is updated by one token after another, and the
/// gates of an update depend on the state. LSTM heads can track a state over any length. A
/// transformer of fixed depth cannot.
class LstmHeads final : public Mixer {
 public:
  double forget = 1;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<LstmHeads>(*this); }
  std::string_view kind() const override { return "lstm"; }
  void declare(Options& options) override {
    options.number("lstm_forget", forget, -100, 100,
                   "initial bias of the forget gates of LSTM heads; 1: most of the state is kept");
  }
  std::int64_t projection_columns() const override { return 4 * columns(); }
  std::int64_t cached_columns() const override { return 0; }
  std::vector<std::int64_t> cached_memories() const override { return {2 * columns()}; }

  void build(MixerScope& layer, const MixerPlace& place) override {
    place_ = place;
    LONGHAND_CHECK(key_heads == heads, "lstm heads: expected as many key heads as heads (", heads,
                   "), got ", key_heads);
    const Scope own = layer.scope() / place.index / "lstm";
    u_ = own.add("u", {4 * columns(), width}, normal(1 / std::sqrt(3.0 * double(width))), true,
                 true);
    bias_ = own.add("bias", {4 * columns()}, constant(0), false);
    std::vector<double> first(static_cast<std::size_t>(4 * columns()), 0.0);
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto begin = first.begin() + (4 * h + 1) * width;
      std::fill(begin, begin + width, forget);
    }
    bias_.value().assign(first);
  }

  HeadsBackward forward(const MixerPass& pass) const override {
    const Segments& rows = pass.input.segments;
    const HeadVars all{pass.projection, place_.projection, heads, 4 * width};
    const Var x = add_bias(copy_heads(all, rows).data, bias_);
    const Tensor state = pass.cache ? pass.cache->memories[0] : Tensor();
    const Var y = lstm({x, 0, heads, 4 * width}, rows, u_, {.before = state, .after = state});
    return write_output({y, 0, heads, width}, rows, {pass.y, place_.output, heads, width});
  }

  std::vector<Var> learned() const override { return {u_, bias_}; }
  double operations_of_pair() const override { return 0; }
  double operations_of_token() const override {
    // Counts three products with the recurrent matrix u_ per token: one in the forward pass and two
    // in the backward pass.
    return 24 * static_cast<double>(columns() * width);
  }

 private:
  MixerPlace place_;
  Parameter u_, bias_;
};

}  // namespace

extern const MixerKind lstm_mixer;
constinit const MixerKind lstm_mixer = mixer_kind<LstmHeads>("lstm");

}  // namespace longhand::nn
