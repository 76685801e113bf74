#pragma once

#include "core/segments.h"
#include "nn/batch.h"

namespace longhand::nn {

/// Tokens in the backend's memory, with their places in their sequences.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;  // one more than the largest position
};
/// The tokens are the last `lengths` of sequences that have `totals` tokens; those before lie in a
/// cache. Without totals each sequence is whole.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {});

/// A batch in the backend's memory. targets [tokens, groups] i32; weights the same, or empty
struct PlacedBatch {
  Input input;
  Tensor targets, weights = {};
  std::int64_t head = 0;

  /// Another batch of the same shape (nn/step_shape.h), into the same memory.
  void assign(const Batch& batch);
};
/// weights are of the type of losses, `master`.
PlacedBatch place(Backend& backend, const Batch& batch, DType master);

}  // namespace longhand::nn
