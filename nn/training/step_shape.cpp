#include "nn/training/step_shape.h"

#include <algorithm>
#include <bit>

namespace longhand::nn {
namespace {

/// Rounds n up to a multiple of p / parts, or of `least` if `least` is larger. p is the largest
/// power of two up to n.
std::int64_t rounded_up(std::int64_t n, std::int64_t parts, std::int64_t least) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  const std::int64_t step = std::max(least, power / parts);
  return (n + step - 1) / step * step;
}

}  // namespace

BatchShape shape_of(const Batch& batch, std::int64_t place) {
  std::int32_t longest = 0;
  for (const std::int32_t length : batch.real_lengths()) longest = std::max(longest, length);
  if (!batch.positions.empty()) longest = std::ranges::max(batch.positions) + 1;
  return {.place = place,
          .tokens = std::ssize(batch.tokens),
          .sequences = std::ssize(batch.lengths),
          .longest = std::bit_ceil(static_cast<std::uint32_t>(longest)),
          .groups = batch.groups,
          .head = batch.head,
          .counted = std::ssize(batch.counted_rows()),
          .weighted = !batch.weights.empty(),
          .features = batch.features.shape,
          .values = batch.values.shape};
}

StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places) {
  StepShape shape;
  for (std::size_t i = 0; i < batches.size(); ++i) shape.push_back(shape_of(batches[i], places[i]));
  return shape;
}

Batch filled_up(Batch batch) {
  const auto same = [&](std::int32_t length) { return length == batch.lengths.front(); };
  if (std::ranges::all_of(batch.lengths, same)) return batch;
  const std::int64_t tokens = rounded_up(std::ssize(batch.tokens), 32, 256);
  const std::int64_t sequences = rounded_up(std::ssize(batch.lengths) + 1, 8, 8);
  batch.filling = tokens - std::ssize(batch.tokens);
  const auto rows = static_cast<std::size_t>(tokens);
  const auto choices = static_cast<std::size_t>(tokens * batch.groups);
  batch.lengths.resize(static_cast<std::size_t>(sequences) - 1);
  batch.lengths.push_back(static_cast<std::int32_t>(batch.filling));
  batch.tokens.resize(rows);
  if (!batch.positions.empty()) batch.positions.resize(rows);
  batch.targets.resize(choices, -1);
  if (!batch.weights.empty()) batch.weights.resize(choices);
  return batch;
}

}  // namespace longhand::nn
