#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/formulas.h"
#include "nn/heads.h"

namespace longhand::nn {

/// How a token's place in its sequence is told.
enum class Positions {
  none,        // by what it sees alone
  rotary,      // queries and keys of softmax heads turn (core/contract/rope.h)
  learned,     // a row of a table is added to its embedding
  sinusoidal,  // the same, of a fixed table
};

/// Attention and feed forward of a block, around the residual stream x.
enum class Order {
  parallel,    // x + attention(norm1 x) + feed_forward(norm2 x)
  sequential,  // h = x + attention(norm1 x);  h + feed_forward(norm2 h)
};

/// Weights at first: normal numbers around 0 of the configured deviation; biases are 0.
enum class Start {
  plain,     // all alike, as GPT-NeoX in transformers
  residual,  // what is added to the stream 1/sqrt(2 layers) times as wide, as GPT-2
};

/// Whether training changes a number of the heads, and how many there are of it.
enum class Learned { no, layer, head };

/// Names of an enumeration's values, in its order.
template <class E>
inline constexpr std::array<std::string_view, 0> names_of{};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Positions>{"none", "rotary", "learned",
                                                                     "sinusoidal"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Order>{"parallel", "sequential"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Start>{"plain", "residual"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<Learned>{"no", "layer", "head"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<Temper>{"none", "position", "length"};

/// A transformer that reads from left to right: token embeddings, blocks of attention and feed
/// forward around a residual stream, a final LayerNorm, one or several output layers. Defaults are
/// GPT-NeoX's.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  std::int64_t inner = 192;  // width inside the feed forward
  Order order = Order::parallel;
  Activation activation = Activation::gelu;
  double epsilon = 1e-5;  // of the norms

  std::vector<HeadList> heads = {};  // one entry for all layers, or one for each
  bool attention_bias = true;
  std::optional<double> score_scale = {};  // of softmax and ChaCAL heads; none: 1/sqrt(width)
  std::int64_t window = 0;                 // keys a softmax head sees; 0: all
  double gamma = 0.9;                      // of ChaCAL heads, at first when it is learned
  Learned learned_gamma = Learned::no;     // then the sigmoid of a parameter
  Temper temper = Temper::none;            // of softmax and ChaCAL heads
  double beta = 1;                         // at first; learned, one a layer

  Positions positions = Positions::rotary;
  double rope_share = 1;     // of each softmax head's entries; 0: none turn
  double rope_base = 10000;  // of the wavelengths, sinusoidal ones too
  bool rope_in_fal = false;
  /// Rows of a learned table. Other tables have so many at first and grow when a later position is
  /// met.
  std::int64_t longest = 2048;

  bool tied = false;                       // the output layer is the embedding
  std::vector<std::int64_t> outputs = {};  // classes of each output layer; empty: the vocabulary
  Start start = Start::plain;
  double deviation = 0.02;

  const HeadList& heads_of(std::int64_t layer) const {
    return heads[heads.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
  bool has(HeadKind kind) const;  // in some layer
};

/// An Error in one line when no model can be made of it.
void check(const DecoderConfig& config);

}  // namespace longhand::nn
