#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/rng.h"
#include "core/shape.h"

namespace longhand::nn {

/// An array of floats on the host, row after row.
struct Floats {
  Shape shape = {0};
  std::vector<double> values = {};
};

/// A token that another one is to look at, for heads that are told so (nn/mixers/softmax.h).
struct ReferencePair {
  std::int32_t row = 0;       // of the one that looks: its number among the tokens
  std::int32_t position = 0;  // of the other in the same sequence: at or before the first one's
};

/// What a model reads and what it is to say, on the host.
///
/// It reads tokens, in sequences one after another without padding, or `features`, a row of floats
/// for each example; or both. It is to say `targets`, `groups` choices a row among the classes of
/// output head `head`, or `values`, floats; or nothing, where it learns from what it reads alone.
struct Batch {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::int32_t> lengths = {};     // of the sequences; their sum is tokens.size()
  std::vector<std::int32_t> positions = {};   // of the tokens; empty: places in their sequences
  std::vector<ReferencePair> reference = {};  // by ascending rows
  Floats features = {};                       // [rows, ...]
  std::vector<std::int32_t> targets = {};     // negative: not counted
  Floats values = {};                         // [rows, ...]
  std::vector<float> weights = {};            // one for each target; empty: all 1
  std::int64_t groups = 1;
  std::int64_t head = 0;
  /// So many tokens at the end, the last sequence, are there only to make a batch of this shape:
  /// not counted, all at position 0.
  std::int64_t filling = 0;
  /// Where few rows have a counted target, they are listed for the output layer. For models that
  /// have a large one.
  bool lists_counted = false;

  /// One more sequence, with as many targets as tokens.
  void append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted);

  std::int64_t rows() const;  // tokens or examples
  /// Those with a counted target, followed by some of -1 to a number that many batches have; none
  /// where they are not listed or are more than half of all.
  std::vector<std::int32_t> counted_rows() const;
  /// What the batch's mean loss is divided by: the sum of the weights of counted targets; where
  /// there are none, the number of values, or of rows.
  double total_weight() const;
  /// lengths but for the filling.
  std::span<const std::int32_t> real_lengths() const {
    return {lengths.data(), lengths.size() - (filling > 0 ? 1 : 0)};
  }
};

/// Makes batch number `place` of step `step`'s data: a pure function of the two, so that neither
/// threads nor earlier steps nor ranks matter. Steps count from 1, batches of a step from 0.
using BatchSource = std::function<Batch(std::int64_t step, std::int64_t place)>;
/// Each from the random stream of its step and part.
BatchSource drawn_batches(std::uint64_t seed, std::function<Batch(Rng&)> draw);

}  // namespace longhand::nn
