#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/models/decoder.h"

/// Measures the statements of Theorem 5.1 about the residual stream of a sorting model. A sequence
/// of tokens consists of the input, ⊥, and the sorted input.
namespace longhand::app {

using Tokens = std::vector<std::int32_t>;

/// The input, ⊥, and the sorted input without its last number. These are the tokens that a decoder
/// has read when it has predicted the whole answer.
Tokens with_answer(const Tokens& input, std::int32_t delimiter);

/// A statement of the theorem, tested at many positions: the largest projections of the residual
/// stream onto the rows of a basis are those of the expected symbols. The lead is the margin
/// relative to the largest projection:
///   lead = (least expected - greatest other) / greatest;   positive if the statement holds
struct Characteristic {
  std::string name;
  std::int64_t held = 0, positions = 0;
  double least_lead = 1;
};

/// The characteristics in this order, over all positions i of all sequences of length n. Each one
/// states which number the residual stream shows at some positions, after a layer or an attention,
/// if it is read with the encoder or the decoder basis:
///   copy       i < n, after the first attention, encoder basis: shows the number at i
///   minimum    i = n, after the first attention, decoder basis: shows the smallest number of the
///              input
///   identity and successor
///              i > n, after the second attention, decoder basis: shows the number at i (identity)
///              and the next greater number of the input, if there is one (successor)
///   answer     n <= i < 2n, after the last layer, decoder basis: shows the next number to predict
/// The model must have two layers.
std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter);

}  // namespace longhand::app
