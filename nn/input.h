#pragma once

#include "core/segments.h"
#include "nn/batch.h"

namespace longhand::nn {

/// Tokens in the backend's memory, with their position ids.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;  // largest position id + 1
  /// True if position ids were given, instead of indices within sequences.
  bool gives_positions = false;
  /// Pairs of reference attention, i32 [pairs, 2], see ReferencePair; may be empty.
  Tensor reference = {};

  /// Replaces the tokens in the same memory. The numbers of tokens, sequences and pairs must not
  /// change. The arguments are those of make_input().
  void assign(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
              std::span<const std::int32_t> totals = {}, std::span<const ReferencePair> pairs = {},
              std::span<const std::int32_t> given_positions = {});
};
/// Makes an input of new tokens. Sequence i has totals[i] tokens. The last lengths[i] of them are
/// new, and earlier tokens are in a cache. Without `totals`, each sequence is complete. If no
/// position ids are given, they are the indices within the sequences. A reference pair whose token
/// would attend to a later token is refused.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {},
                 std::span<const ReferencePair> reference = {},
                 std::span<const std::int32_t> given_positions = {});
/// Makes an input of a batch's tokens, position ids and reference pairs.
Input make_input(Backend& backend, const Batch& batch);

/// Makes an input of one complete sequence.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens);

/// A batch in the backend's memory. Parts that the batch lacks are empty.
struct PlacedBatch {
  Input input;           // the batch's tokens
  Tensor features = {};  // [rows, ...], of the type of the parameters
  Tensor targets = {};   // i32 [rows, groups]
  Tensor values = {};    // [rows, ...], of the type of the parameters
  Tensor weights = {};   // shaped like `targets`, of the type of the parameters
  std::int64_t head = 0;
  /// The rows with a scored target and their targets, if the batch lists these rows. The list is
  /// padded with row 0 and target -1.
  struct Counted {
    Tensor rows = {};                   // i32 [n]
    Tensor targets = {}, weights = {};  // [n, groups], the targets and weights of these rows
  } counted = {};

  /// Replaces the batch by another batch of the same shape (nn/training/step_shape.h), in the same
  /// memory.
  void assign(const Batch& batch);

 private:
  void assign_counted(const Batch& batch);
};
/// Copies a batch to the backend's memory. `master` is the type of parameters and losses, f32 or
/// f64.
PlacedBatch place(Backend& backend, const Batch& batch, DType master);

}  // namespace longhand::nn
