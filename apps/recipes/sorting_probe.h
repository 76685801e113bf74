#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/models/decoder.h"

/// Measures the statements of Theorem 5.1 about the residual stream of a sorting model. A sequence
/// of tokens consists of the input, the delimiter ⊥, and the sorted input.
namespace longhand::app {

using Tokens = std::vector<std::int32_t>;

/// Returns the input, the delimiter ⊥, and the sorted input without its last number. These are the
/// tokens that a decoder has read when it has predicted the whole answer.
Tokens with_answer(const Tokens& input, std::int32_t delimiter);

/// A statement of Theorem 5.1, tested at many positions: the largest projections of the residual
/// stream onto the rows of a basis are those of the expected symbols. The statement holds at a
/// position if its lead is positive:
///   lead = (smallest expected projection - largest other projection) / largest projection
struct Characteristic {
  std::string name;
  std::int64_t held = 0, positions = 0;
  double least_lead = 1;
};

/// Tests the four statements below, in this order, over all inputs. The model must have two layers.
/// n is the length of the input, so the delimiter ⊥ is at position i = n. A statement names the
/// number that the residual stream shows at some positions i, after a layer or an attention, if the
/// stream is multiplied by the encoder or the decoder basis (Bases):
///   copy       i < n, after the first attention, encoder basis: shows the number at i
///   minimum    i = n, after the first attention, decoder basis: shows the smallest number of the
///              input
///   identity and successor
///              i > n, after the second attention, decoder basis: shows the number at i (identity)
///              and the next greater number of the input, if there is one (successor)
///   answer     n <= i < 2n, after the last layer, decoder basis: shows the next number to predict
std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter);

}  // namespace longhand::app
