#pragma once

#include <utility>

#include "core/numbers.h"
#include "nn/batch.h"

namespace longhand::nn {

/// A data set in memory. Example i consists of row i of `features` and, if there are targets,
/// either the class targets[i] or row i of `values`.
struct Examples {
  Numbers features;                        // [examples, ...]
  std::vector<std::int32_t> targets = {};  // one class per example, or empty
  std::optional<Numbers> values = {};      // [examples, ...]
  /// Batches contain the features times this factor, for example 1.0 / 255 for pixels.
  double scale = 1;

  std::int64_t count() const { return features.count(); }
  /// The examples with these indices.
  Batch batch(std::span<const std::int64_t> rows) const;
  /// The examples first .. first + count - 1.
  Batch batch(std::int64_t first, std::int64_t count) const;
  /// Divides the examples at random into two parts. The first part contains share * count()
  /// examples, rounded down.
  std::pair<Examples, Examples> split(double share, std::uint64_t seed) const;
};

/// Batches of `size` examples in random order. Every epoch contains each example once, in an order
/// that depends on (seed, epoch) only. A batch may contain the end of one epoch and the beginning
/// of the next. `batches` is the number of batches per step (TrainerOptions: parts * accumulation).
/// The source throws an Error if the index of a batch within its step is not below `batches`,
/// because such a batch would contain the same examples as a batch of the next step.
BatchSource shuffled_batches(Examples examples, std::int64_t size, std::uint64_t seed,
                             std::int64_t batches = 1);

}  // namespace longhand::nn
