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

/// For heads that use reference attention (nn/mixers/softmax.h): the token at `row` should attend
/// to the token at `position`.
struct ReferencePair {
  std::int32_t row = 0;       // index among the batch's tokens
  std::int32_t position = 0;  // place in the same sequence; at or before the place of `row`
};

/// Input and targets of a model, on the host.
///
/// The input is tokens, in sequences one after another without padding, or `features`, one row of
/// floats per example, or both. The targets are `targets`, `groups` choices per row among the
/// classes of output head `head`, or `values`, floats. A model that needs no targets, such as an
/// autoencoder, may have neither.
struct Batch {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::int32_t> lengths = {};  // tokens in each sequence; the sum is tokens.size()
  // position of each token; empty: its place in its sequence
  std::vector<std::int32_t> positions = {};
  std::vector<ReferencePair> reference = {};  // in ascending order of rows
  Floats features = {};                       // [rows, ...]
  std::vector<std::int32_t> targets = {};     // a negative target is not scored
  Floats values = {};                         // [rows, ...]
  std::vector<float> weights = {};            // one per target; empty: all are 1
  std::int64_t groups = 1;
  std::int64_t head = 0;
  /// The last sequence consists of this many tokens that only fill the batch up to its shape. They
  /// are not scored and have position 0.
  std::int64_t filling = 0;
  /// If few rows have a scored target, list these rows for the output layer. Pays off for a large
  /// output layer.
  bool lists_counted = false;

  /// Adds a sequence with one target per token.
  void append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted);

  std::int64_t rows() const;  // number of tokens or examples
  /// Rows with a scored target, padded with -1 to a length that many batches share. Empty if rows
  /// are not listed or if more than half of them have a scored target.
  std::vector<std::int32_t> counted_rows() const;
  /// Divisor of the batch's mean loss: the sum of the weights of scored targets, or, without
  /// targets, the number of values or rows.
  double total_weight() const;
  /// Lengths of all sequences except the filling one.
  std::span<const std::int32_t> real_lengths() const {
    return {lengths.data(), lengths.size() - (filling > 0 ? 1 : 0)};
  }
};

/// Makes batch number `place` of step `step`. The result depends on these two numbers only, not on
/// threads, earlier steps or ranks. Steps count from 1, the batches of a step from 0.
using BatchSource = std::function<Batch(std::int64_t step, std::int64_t place)>;
/// Draws each batch from the random stream of its step and place.
BatchSource drawn_batches(std::uint64_t seed, std::function<Batch(Rng&)> draw);

}  // namespace longhand::nn
