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

std::int64_t longest_of(std::span<const std::int32_t> lengths) {
  std::int32_t longest = 0;
  for (const std::int32_t length : lengths) longest = std::max(longest, length);
  return std::bit_ceil(static_cast<std::uint32_t>(longest));
}

bool have_one_length(std::span<const std::int32_t> lengths) {
  return std::ranges::all_of(lengths, [&](auto length) { return length == lengths.front(); });
}

/// True if the batch has tokens and target classes, but no floats. Such a batch keeps its meaning
/// if padding tokens are added, because their targets are not scored. Floats cannot be padded: some
/// models expect one row of floats per token, others one row per sequence.
bool can_be_padded(const Batch& batch) {
  return !batch.tokens.empty() && !batch.targets.empty() && batch.features.values.empty() &&
         batch.values.values.empty() && batch.named_features.empty();
}

/// Adds empty sequences and a padding sequence, so that the numbers of sequences and of tokens are
/// rounded up as filled_up() describes. Returns the length of the padding sequence.
std::int64_t fill_up(std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& lengths) {
  const std::int64_t rounded = rounded_up(std::ssize(tokens), 32, 256);
  const std::int64_t sequences = rounded_up(std::ssize(lengths) + 1, 8, 8);
  const std::int64_t filling = rounded - std::ssize(tokens);
  lengths.resize(static_cast<std::size_t>(sequences) - 1);
  lengths.push_back(static_cast<std::int32_t>(filling));
  tokens.resize(static_cast<std::size_t>(rounded));
  return filling;
}

}  // namespace

BatchShape shape_of(const Batch& batch, std::int64_t place) {
  BatchShape shape{.place = place,
                   .tokens = std::ssize(batch.tokens),
                   .sequences = std::ssize(batch.lengths),
                   .longest = longest_of(batch.real_lengths()),
                   .groups = batch.groups,
                   .head = batch.head,
                   .counted = std::ssize(batch.counted_rows()),
                   .weighted = !batch.weights.empty(),
                   .features = batch.features.shape,
                   .values = batch.values.shape};
  if (!batch.positions.empty()) {
    const std::int32_t end = std::ranges::max(batch.positions) + 1;
    shape.longest = longest_of({&end, 1});
  }
  for (const auto& [name, input] : batch.named_features) {
    shape.named_features.emplace(name, input.shape);
  }
  for (const auto& [name, input] : batch.named_tokens) {
    shape.named_tokens.emplace(
        name, BatchShape::TokenShape{std::ssize(input.tokens), std::ssize(input.lengths),
                                     longest_of(input.real_lengths())});
  }
  return shape;
}

StepShape shape_of(const std::vector<Batch>& batches, const std::vector<std::int64_t>& places) {
  StepShape shape;
  for (std::size_t i = 0; i < batches.size(); ++i) shape.push_back(shape_of(batches[i], places[i]));
  return shape;
}

Batch filled_up(Batch batch) {
  if (!can_be_padded(batch)) return batch;
  bool is_even = have_one_length(batch.lengths);
  for (const auto& [name, input] : batch.named_tokens) {
    is_even = is_even && have_one_length(input.lengths);
  }
  if (is_even) return batch;
  batch.filling = fill_up(batch.tokens, batch.lengths);
  for (auto& [name, input] : batch.named_tokens) {
    input.filling = fill_up(input.tokens, input.lengths);
  }
  const std::size_t rows = batch.tokens.size();
  const std::size_t choices = rows * static_cast<std::size_t>(batch.groups);
  if (!batch.positions.empty()) batch.positions.resize(rows);
  batch.targets.resize(choices, -1);
  if (!batch.weights.empty()) batch.weights.resize(choices);
  return batch;
}

}  // namespace longhand::nn
