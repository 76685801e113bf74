#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/formulas.h"
#include "nn/layers/norm.h"
#include "nn/mixing/mixer_list.h"
#include "nn/options.h"

namespace longhand::nn {

/// The form in which positions enter the model.
enum class Positions {
  none,        // not at all, except through causality
  rotary,      // queries and keys are rotated (nn/layers/rope.h)
  learned,     // a trained table is added to the embeddings
  sinusoidal,  // a fixed table is added to the embeddings
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Positions>{"none", "rotary", "learned",
                                                                     "sinusoidal"};

/// The order in which mixing and feed forward are joined to the residual stream x.
enum class Order {
  parallel,    // x + mixing(norm1 x) + feed_forward(norm2 x)
  sequential,  // h = x + mixing(norm1 x);  h + feed_forward(norm2 h)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Order>{"parallel", "sequential"};

/// Initial weights: normal numbers with mean 0 and the configured standard deviation. Biases are 0.
enum class Start {
  plain,  // the same for all matrices, as GPT-NeoX in transformers
  // scale the standard deviation of residual projections by 1/sqrt(2 layers), as GPT-2 does
  residual,
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Start>{"plain", "residual"};

/// A causal transformer: token embeddings, blocks of mixing and feed forward around a residual
/// stream, a final norm, one or several output layers. The defaults are GPT-NeoX's.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  double embedding_scale = 1;

  // The norm of every block.
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;  // epsilon of the norms
  // also normalize the outputs of mixing and feed forward before they are added
  bool norms_after = false;
  Order order = Order::parallel;
  std::vector<MixerList> mixers = {};  // one entry for all layers, or one per layer
  // biases of the projection into the mixers and of the one out of them
  bool projection_bias = true, mixing_bias = true;
  std::int64_t inner = 192;  // width inside the feed forward
  Activation activation = Activation::gelu;
  bool gated = false;  // gate the feed forward
  bool feed_forward_bias = true;

  Positions positions = Positions::rotary;
  /// Positions are numbers below `longest` that come with the tokens (Batch::positions) instead of
  /// places. Input without them is refused.
  bool given_positions = false;
  double sinusoid_base = 10000;
  /// Rows of a learned table. Other tables start with this many rows and grow when a later position
  /// occurs.
  std::int64_t longest = 2048;

  bool tied = false;  // the output layer shares the embedding's weight
  // classes of each output layer; empty: one output with the vocabulary
  std::vector<std::int64_t> outputs = {};
  bool output_bias = false;  // of the output layers
  Start start = Start::plain;
  double deviation = 0.02;

  LoraOptions lora = {};  // low-rank products of the blocks

  const MixerList& mixers_of(std::int64_t layer) const {
    return mixers[mixers.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
};

/// True if the configuration has mixers that use reference pairs.
bool wants_reference(const DecoderConfig& config);

/// Maximum tokens of a sequence that its mixers can read; empty: no limit.
std::optional<std::int64_t> most_tokens(const DecoderConfig& config);

/// The projections to which low-rank products can be added, as names of lora_targets().
std::vector<std::string_view> projections(const DecoderConfig& config);

/// Throws an Error if no model can be built from this configuration.
void check(const DecoderConfig& config);

}  // namespace longhand::nn
