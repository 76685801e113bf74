#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/models/decoder.h"

/// Measures the statements of Theorem 5.1 about the inside of a sorting model. Sequences are
/// tokens: an input, ⊥, and the sorted input.
namespace longhand::app {

using Tokens = std::vector<std::int32_t>;

/// The input, ⊥, and the sorted input without its last number: what a decoder has read when it has
/// predicted everything.
Tokens with_answer(const Tokens& input, std::int32_t delimiter);

/// A statement of the theorem over many positions: among the projections of the state onto the rows
/// of a basis, those of the expected symbols are the largest. The lead is the margin relative to
/// the largest of all:
///   lead = (least expected - greatest other) / greatest;   positive if the statement holds
struct Characteristic {
  std::string name;
  std::int64_t held = 0, positions = 0;
  double least_lead = 1;
};

/// In this order, over all positions of all sequences:
///   copy       i < n, after the first attention, encoder basis: the number at i
///   minimum    i = n, after the first attention, decoder basis: the smallest number of the input
///   identity and successor
///              i > n, after the second attention, decoder basis: the number at i and the next
///              greater one of the input, if there is one
///   answer     n <= i < 2n, after the last layer, decoder basis: the next number to predict
/// The model has two layers.
std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter);

}  // namespace longhand::app
