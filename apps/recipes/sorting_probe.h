#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/models/decoder.h"

/// What Theorem 5.1 says of a sorting model's insides, measured. Sequences are tokens: an input,
/// ⊥, and the input sorted.
namespace longhand::app {

using Tokens = std::vector<std::int32_t>;

/// The input, ⊥, and all of the sorted input but its last number: what a decoder has read when it
/// has said everything.
Tokens with_answer(const Tokens& input, std::int32_t delimiter);

/// One statement of the theorem over many positions. There, of all projections of the state onto
/// the rows of a basis, those of the expected symbols are the largest. The lead is by how much, as
/// a share of the largest of all:
///   lead = (least expected - greatest other) / greatest;   positive where the statement holds
struct Characteristic {
  std::string name;
  std::int64_t held = 0, positions = 0;
  double least_lead = 1;
};

/// In this order, over all positions of all sequences:
///   copy       i < n, after the first attention, encoder basis: the number there
///   minimum    i = n, after the first attention, decoder basis: the least number of the input
///   identity and successor
///              i > n, after the second attention, decoder basis: the number there and the next
///              greater one of the input, where there is one
///   answer     n <= i < 2n, after the last layer, decoder basis: the number to be said next
/// The model has two layers.
std::vector<Characteristic> characteristics(nn::Decoder& model, std::span<const Tokens> inputs,
                                            std::int32_t delimiter);

}  // namespace longhand::app
