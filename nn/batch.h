#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/shape.h"

namespace longhand::nn {

/// An array of floats on the host, in row-major order.
struct Floats {
  Shape shape = {0};
  std::vector<double> values = {};
};

/// States that the token at `row` should attend to the token at `position`. Used by reinforced
/// heads (nn/mixers/softmax.h).
struct ReferencePair {
  std::int32_t row = 0;  // index among all tokens of the batch
  /// Index within the sequence; not after the token at `row`.
  std::int32_t position = 0;
};

/// Token ids of several sequences, one after another without padding.
struct TokenRows {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::int32_t> lengths = {};  // number of tokens of each sequence
  std::int64_t filling = 0;                // as in Batch

  void append(std::span<const std::int32_t> sequence);
  std::span<const std::int32_t> real_lengths() const;  // as in Batch
};

/// Input and targets of a model, on the host.
///
/// The input is in `tokens`, `features`, both, or only in named inputs. `tokens` contains the
/// sequences one after another without padding, and `features` has one row of floats per example.
/// The targets are classes, in `targets`, or floats, in `values`. Classes belong to the output head
/// `head`, and each row has `groups` of them. For a model without targets, such as an autoencoder,
/// both are empty.
struct Batch {
  std::vector<std::int32_t> tokens = {};
  /// Number of tokens of each sequence; the sum is tokens.size()
  std::vector<std::int32_t> lengths = {};
  // Position id of each token; empty: the position is the token's index within its sequence.
  std::vector<std::int32_t> positions = {};
  std::vector<ReferencePair> reference = {};  // in ascending order of rows
  Floats features = {};                       // [rows, ...]
  /// Further inputs by name. Float inputs may have any number of rows. In a batch with `tokens`,
  /// each named token input has one sequence for each sequence of `tokens`. It may be longer,
  /// shorter or empty.
  std::map<std::string, Floats> named_features = {};
  std::map<std::string, TokenRows> named_tokens = {};
  std::vector<std::int32_t> targets = {};  // [rows, groups]; negative: not scored
  Floats values = {};                      // [rows, ...]
  std::vector<float> weights = {};         // weight of each target; empty: all weights are 1
  std::int64_t groups = 1;
  std::int64_t head = 0;
  /// Number of tokens of the padding sequence, which comes last; 0: no padding. Padding tokens are
  /// not scored and have position 0. Only filled_up() adds padding (nn/training/step_shape.h).
  std::int64_t filling = 0;
  /// If at most half of the rows have a scored target, compute the output layer only for these
  /// rows. This saves time if the output layer is large.
  bool lists_counted = false;

  /// Adds a sequence with one target per token.
  void append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted);

  /// Number of tokens or, without tokens, of examples. If all inputs have names, the targets
  /// determine it.
  std::int64_t rows() const;
  /// Indices of the rows with a scored target, padded with -1 to one of a few lengths. Empty if
  /// lists_counted is false or more than half of the rows have a scored target.
  std::vector<std::int32_t> counted_rows() const;
  /// Divisor of the batch's mean loss: the total weight of all scored classes, or the number of
  /// `values`, or the number of rows if there are no targets.
  double total_weight() const;
  /// Lengths of all sequences except the padding sequence, if any.
  std::span<const std::int32_t> real_lengths() const;
};

/// Throws an Error that names the member of the batch whose size does not fit the others.
void check(const Batch& batch);

/// Makes batch `place` of step `step`. The result depends only on these two numbers, not on
/// threads, earlier calls or ranks. Steps count from 1, the batches of a step from 0.
using BatchSource = std::function<Batch(std::int64_t step, std::int64_t place)>;
/// Draws each batch from the random stream of its step and place.
BatchSource drawn_batches(std::uint64_t seed, std::function<Batch(Rng&)> draw);

}  // namespace longhand::nn
