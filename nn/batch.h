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

/// Two tokens of one sequence: the token at `row` should attend to the token at `position`.
/// Reinforced heads increase the attention weights of such pairs (nn/mixers/softmax.h).
struct ReferencePair {
  std::int32_t row = 0;  // index of the attending token among all tokens of the batch
  /// Index of the attended token within its sequence. It must not come after the attending token.
  std::int32_t position = 0;
};

/// Token ids of several sequences, one after another without padding.
struct TokenRows {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::int32_t> lengths = {};  // number of tokens of each sequence
  std::int64_t filling = 0;                // number of padding tokens at the end

  void append(std::span<const std::int32_t> sequence);
  /// Lengths of all sequences except the padding sequence, if any.
  std::span<const std::int32_t> real_lengths() const;
};

/// Input and targets of a model, on the host.
///
/// The input is in `tokens`, `features`, both, or only in named inputs. `tokens` contains the
/// sequences one after another without padding, and `features` has one row of floats per example.
/// The targets are classes, in `targets`, or floats, in `values`. Target classes are predicted by
/// the output layer with index `head`, and each row (token or example) has `groups` target classes.
/// `targets` and `values` are both empty for a model without targets, such as an autoencoder.
struct Batch {
  std::vector<std::int32_t> tokens = {};
  /// Number of tokens of each sequence; the sum is tokens.size()
  std::vector<std::int32_t> lengths = {};
  // Position id of each token; empty: the position is the token's index within its sequence.
  std::vector<std::int32_t> positions = {};
  /// Pairs of tokens, in ascending order of ReferencePair::row.
  std::vector<ReferencePair> reference = {};
  Floats features = {};  // [rows, ...]
  /// Further inputs by name. Float inputs may have any number of rows. In a batch with `tokens`,
  /// each named token input has one sequence for each sequence of `tokens`. The lengths of the two
  /// sequences may differ, and the sequence of the named input may be empty.
  std::map<std::string, Floats> named_features = {};
  std::map<std::string, TokenRows> named_tokens = {};
  std::vector<std::int32_t> targets = {};  // target classes, [rows, groups]; negative: not scored
  Floats values = {};                      // float targets, [rows, ...]
  std::vector<float> weights = {};         // weight of each target; empty: all weights are 1
  std::int64_t groups = 1;
  std::int64_t head = 0;
  /// Number of tokens of the padding sequence, which comes last; 0: no padding. Padding tokens are
  /// not scored and have position 0. Only filled_up() adds padding (nn/training/step_shape.h).
  std::int64_t filling = 0;
  /// If true, and if at most half of the rows have a scored target, the output layer is computed
  /// only for the rows with a scored target. This saves time if the output layer is large.
  bool lists_counted = false;

  /// Adds a sequence with one target per token.
  void append(std::span<const std::int32_t> sequence, std::span<const std::int32_t> wanted);

  /// Number of tokens or, in a batch without tokens, of examples. If the batch has only named
  /// inputs, it is the number of rows of the targets.
  std::int64_t rows() const;
  /// Indices of the rows with a scored target. The list is padded with -1, so that only a few
  /// different lengths occur. It is empty if lists_counted is false or more than half of the rows
  /// have a scored target.
  std::vector<std::int32_t> counted_rows() const;
  /// The number by which the summed loss of the batch is divided. If the targets are floats, it is
  /// the number of `values`. If the targets are classes, it is the total weight of the scored
  /// targets. If there are no targets, it is the number of rows.
  double total_weight() const;
  /// Lengths of all sequences except the padding sequence, if any.
  std::span<const std::int32_t> real_lengths() const;
};

/// Checks that the sizes of the batch's members fit each other. If a size does not, throws an Error
/// that names the member.
void check(const Batch& batch);

/// A function that makes one batch of a training step. `step` counts from 1, and `place` is the
/// index of the batch within the step. The result depends only on these two numbers, not on
/// threads, earlier calls or ranks.
using BatchSource = std::function<Batch(std::int64_t step, std::int64_t place)>;
/// Returns a source that makes each batch by calling `draw` with random numbers. These depend only
/// on the seed, the training step and the index of the batch within the step.
BatchSource drawn_batches(std::uint64_t seed, std::function<Batch(Rng&)> draw);

}  // namespace longhand::nn
