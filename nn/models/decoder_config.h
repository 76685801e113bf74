#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/formulas.h"
#include "nn/layers/norm.h"
#include "nn/mixing/mixer_list.h"
#include "nn/options.h"

namespace longhand::nn {

/// How the model receives positions.
enum class Positions {
  none,        // only through the causal mask
  rotary,      // queries and keys are rotated (nn/layers/rope.h)
  learned,     // a trained table is added to the embeddings
  sinusoidal,  // a fixed table is added to the embeddings
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Positions>{"none", "rotary", "learned",
                                                                     "sinusoidal"};

/// How mixing and feed forward are connected to the residual stream x.
enum class Order {
  parallel,    // x + mixing(norm1 x) + feed_forward(norm2 x)
  sequential,  // h = x + mixing(norm1 x);  h + feed_forward(norm2 h)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Order>{"parallel", "sequential"};

/// Initial weights. They are normal numbers with mean 0; biases are 0.
enum class Start {
  plain,  // the configured standard deviation for all matrices, as GPT-NeoX in transformers
  // Standard deviation of residual projections divided by sqrt(2 layers), as in GPT-2.
  residual,
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Start>{"plain", "residual"};

/// A causal transformer: token embeddings, blocks of mixing and feed forward around a residual
/// stream, a final norm, and one or several output layers. The defaults are those of GPT-NeoX.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  double embedding_scale = 1;

  // The norms of every block.
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;  // epsilon of the norms
  // Also normalize the outputs of mixing and feed forward before they are added.
  bool norms_after = false;
  Order order = Order::parallel;
  std::vector<MixerList> mixers = {};  // one entry for all layers, or one per layer
  // Biases of the projection to the mixers and of the output projection.
  bool projection_bias = true, mixing_bias = true;
  std::int64_t inner = 192;  // inner width of the feed forward
  Activation activation = Activation::gelu;
  bool gated = false;  // use gated feed forwards
  bool feed_forward_bias = true;

  Positions positions = Positions::rotary;
  /// If true, positions are the ids in Batch::positions instead of the tokens' indices. The ids
  /// must be less than `longest`. Input without position ids is refused.
  bool given_positions = false;
  double sinusoid_base = 10000;
  /// Number of rows of a learned position table. Other tables start with at most this many rows and
  /// grow when a later position occurs.
  std::int64_t longest = 2048;

  bool tied = false;  // the output layer shares the weight of the embedding
  // Number of classes of each output layer; empty: one output layer over the vocabulary.
  std::vector<std::int64_t> outputs = {};
  bool output_bias = false;  // the output layers have biases
  Start start = Start::plain;
  double deviation = 0.02;

  LoraOptions lora = {};  // low-rank products of the blocks

  const MixerList& mixers_of(std::int64_t layer) const {
    return mixers[mixers.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
};

/// True if the configuration has mixers that depend on reference pairs.
bool wants_reference(const DecoderConfig& config);

/// Maximum number of tokens of a sequence that all mixers can read; no value: no limit.
std::optional<std::int64_t> most_tokens(const DecoderConfig& config);

/// The projections to which low-rank products can be added, out of lora_targets().
std::vector<std::string_view> projections(const DecoderConfig& config);

/// Throws an Error if no model can be built from this configuration.
void check(const DecoderConfig& config);

}  // namespace longhand::nn
