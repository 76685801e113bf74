#pragma once

#include "core/segments.h"
#include "nn/batch.h"

namespace longhand::nn {

/// Tokens in the backend's memory, with their positions.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;      // largest position + 1
  bool gives_positions = false;  // positions were given and are not the places in the sequences
  Tensor reference = {};         // i32 [pairs, 2], see ReferencePair; may be empty

  /// Replaces the tokens, in the same memory, by equally many tokens with as many sequences and
  /// pairs. The arguments are those of make_input().
  void assign(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
              std::span<const std::int32_t> totals = {}, std::span<const ReferencePair> pairs = {},
              std::span<const std::int32_t> given_positions = {});
};
/// The tokens are the last `lengths` tokens of sequences with `totals` tokens; earlier ones are in
/// a cache. Without totals each sequence is complete. Without positions, positions are places.
/// Refuses a reference pair whose token attends to a later one.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {},
                 std::span<const ReferencePair> reference = {},
                 std::span<const std::int32_t> given_positions = {});
/// The tokens of a batch with its positions and reference pairs.
Input make_input(Backend& backend, const Batch& batch);

/// One complete sequence.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens);

/// A batch in the backend's memory. Parts that the batch does not have are empty.
struct PlacedBatch {
  Input input;           // the batch's tokens
  Tensor features = {};  // [rows, ...], of the parameters' type
  Tensor targets = {};   // i32 [rows, groups]
  Tensor values = {};    // [rows, ...], of the parameters' type
  Tensor weights = {};   // shape of targets, of the parameters' type
  std::int64_t head = 0;
  /// Rows with a scored target and their targets, if the batch lists them. Rows that only pad the
  /// list are row 0 with a target of -1.
  struct Counted {
    Tensor rows = {};                   // i32 [n]
    Tensor targets = {}, weights = {};  // [n, groups], the entries of these rows
  } counted = {};

  /// Replaces the batch by another of the same shape (nn/training/step_shape.h), in the same
  /// memory.
  void assign(const Batch& batch);

 private:
  void assign_counted(const Batch& batch);
};
/// `master` is the type of parameters and losses, f32 or f64.
PlacedBatch place(Backend& backend, const Batch& batch, DType master);

}  // namespace longhand::nn
