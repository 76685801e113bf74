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

/// Tests four statements about a model with two layers over all inputs, and returns their results
/// in the order below. Each statement says which numbers should have the largest dot products with
/// the residual stream at position i. The vectors of the numbers are rows of the embedding or of
/// the output layer. The input has n numbers, so the delimiter ⊥ is at position n.
///   copy: for i < n, after the first attention, rows of the embedding: the number at i;
///   minimum: for i = n, after the first attention, rows of the output layer: the smallest number
///     of the input;
///   identity and successor: for i > n, after the second attention, rows of the output layer: the
///     number at i and, if there is one, the next greater number of the input;
///   answer: for n <= i < 2n, after the last layer, rows of the output layer: the next number to
///     predict.
std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter);

}  // namespace longhand::app
