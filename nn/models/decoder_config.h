#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/formulas.h"
#include "nn/layers/norm.h"
#include "nn/mixer_core/mixer_list.h"
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

/// How a block changes the residual stream x.
enum class Order {
  parallel,    // x + mixing(norm1 x) + feed_forward(norm2 x)
  sequential,  // h + feed_forward(norm2 h), where h = x + mixing(norm1 x)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Order>{"parallel", "sequential"};

/// Distribution of initial weights. Weights are normal with mean 0, and biases are 0.
enum class Start {
  plain,  // all matrices have the configured standard deviation, as in Hugging Face's GPT-NeoX
  // As in GPT-2: matrices whose output is added to the residual stream have the configured standard
  // deviation divided by sqrt(2 * layers).
  residual,
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Start>{"plain", "residual"};

/// A causal transformer: token embeddings, blocks of mixing and feed forward that add to a residual
/// stream, a final norm, and one or several output layers. The defaults are those of GPT-NeoX.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  double embedding_scale = 1;

  // Kind of all norms.
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;  // epsilon of the norms
  // If true, the outputs of mixing and feed forward are also normalized before they are added to
  // the residual stream.
  bool norms_after = false;
  Order order = Order::parallel;
  std::vector<MixerList> mixers = {};  // mixers of each layer, or one list for all layers
  // projection_bias: the projection to queries, keys and values has a bias. mixing_bias: the output
  // projection of the mixing has a bias.
  bool projection_bias = true, mixing_bias = true;
  std::int64_t inner = 192;  // inner width of the feed forward
  Activation activation = Activation::gelu;
  bool gated = false;
  bool feed_forward_bias = true;
  /// Dropout rate in training. As in GPT-2, dropout applies to the embeddings, and to the results
  /// of mixing and feed forward before they are added to the residual stream.
  double dropout = 0;

  Positions positions = Positions::rotary;
  /// If true, a token's position is its id in Batch::positions, not its index in the sequence. Ids
  /// must be less than `longest`, and input without ids throws an Error.
  bool given_positions = false;
  double sinusoid_base = 10000;
  /// Number of rows of a learned position table. Other position tables start with at most this many
  /// rows, and are replaced by larger ones when a larger position occurs.
  std::int64_t longest = 2048;

  bool tied = false;  // the output layer shares the weight of the embedding
  // Number of classes of each output layer; empty: one output layer over the vocabulary.
  std::vector<std::int64_t> outputs = {};
  bool output_bias = false;
  Start start = Start::plain;
  double deviation = 0.02;

  LoraOptions lora = {};

  const MixerList& mixers_of(std::int64_t layer) const {
    return mixers[mixers.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
};

/// True if the configuration has mixers whose output depends on Batch::reference, a list of pairs
/// of tokens of which the first should attend to the second.
bool wants_reference(const DecoderConfig& config);

/// Maximum number of tokens in a sequence: the smallest limit of all mixers. No value: no limit.
std::optional<std::int64_t> most_tokens(const DecoderConfig& config);

/// The projections of the model to which low-rank products can be added, named as in
/// lora_targets().
std::vector<std::string_view> projections(const DecoderConfig& config);

/// Throws an Error if no model can be built from this configuration.
void check(const DecoderConfig& config);

}  // namespace longhand::nn
