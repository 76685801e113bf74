#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/formulas.h"
#include "nn/layers/norm.h"
#include "nn/mixing/mixer_list.h"
#include "nn/options.h"

namespace longhand::nn {

/// How a token's place in its sequence is told.
enum class Positions {
  none,        // by what it sees alone
  rotary,      // queries and keys of the mixers turn (nn/layers/rope.h)
  learned,     // a row of a table is added to its embedding
  sinusoidal,  // the same, of a fixed table
};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Positions>{"none", "rotary", "learned",
                                                                     "sinusoidal"};

/// Mixing and feed forward of a block, around the residual stream x.
enum class Order {
  parallel,    // x + mixing(norm1 x) + feed_forward(norm2 x)
  sequential,  // h = x + mixing(norm1 x);  h + feed_forward(norm2 h)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Order>{"parallel", "sequential"};

/// Weights at first: normal numbers around 0 of the configured deviation; biases are 0.
enum class Start {
  plain,     // all alike, as GPT-NeoX in transformers
  residual,  // what is added to the stream 1/sqrt(2 layers) times as wide, as GPT-2
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Start>{"plain", "residual"};

/// A transformer that reads from left to right: token embeddings, blocks of mixing and feed forward
/// around a residual stream, a final norm, one or several output layers. Defaults are GPT-NeoX's.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  double embedding_scale = 1;

  // Of every block.
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;     // of the norms
  bool norms_after = false;  // mixing and feed forward are normed again before they are added
  Order order = Order::parallel;
  std::vector<MixerList> mixers = {};               // one entry for all layers, or one for each
  bool projection_bias = true, mixing_bias = true;  // into the mixers and out of them
  std::int64_t inner = 192;                         // width inside the feed forward
  Activation activation = Activation::gelu;
  bool gated = false;  // the feed forward
  bool feed_forward_bias = true;

  Positions positions = Positions::rotary;
  /// Positions are numbers below `longest` that come with the tokens (Batch::positions): not their
  /// places, which no input may then go without.
  bool given_positions = false;
  double sinusoid_base = 10000;
  /// Rows of a learned table. Other tables have so many at first and grow when a later position is
  /// met.
  std::int64_t longest = 2048;

  bool tied = false;                       // the output layer is the embedding
  std::vector<std::int64_t> outputs = {};  // classes of each output layer; empty: the vocabulary
  bool output_bias = false;                // of the output layers
  Start start = Start::plain;
  double deviation = 0.02;

  LoraOptions lora = {};  // of the blocks

  const MixerList& mixers_of(std::int64_t layer) const {
    return mixers[mixers.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
};

/// Whether mixers of it are told what tokens are to look at.
bool wants_reference(const DecoderConfig& config);

/// Tokens of the longest sequence that its mixers read; none: any.
std::optional<std::int64_t> most_tokens(const DecoderConfig& config);

/// What LoRA can be added to: names of lora_targets().
std::vector<std::string_view> projections(const DecoderConfig& config);

/// An Error in one line when no model can be made of it.
void check(const DecoderConfig& config);

}  // namespace longhand::nn
