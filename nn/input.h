#pragma once

#include "core/segments.h"
#include "nn/batch.h"

namespace longhand::nn {

/// Tokens in the backend's memory, with their positions: places in their sequences, or numbers that
/// were given.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;      // one more than the largest position
  bool gives_positions = false;  // they are not the places
  Tensor reference = {};         // i32 [pairs, 2], as ReferencePair; or empty

  /// As many other tokens, of as many sequences and with as many pairs, in the same memory: see
  /// make_input().
  void assign(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
              std::span<const std::int32_t> totals = {}, std::span<const ReferencePair> pairs = {},
              std::span<const std::int32_t> given_positions = {});
};
/// The tokens are the last `lengths` of sequences that have `totals` tokens; those before lie in a
/// cache. Without totals each sequence is whole, without positions they are the places. Refused
/// where a token is to look at a later one.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {},
                 std::span<const ReferencePair> reference = {},
                 std::span<const std::int32_t> given_positions = {});
/// A batch's tokens, all that is said of them included.
Input make_input(Backend& backend, const Batch& batch);

/// One whole sequence.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens);

/// A batch in the backend's memory. What it does not have is empty.
struct PlacedBatch {
  Input input;           // its tokens
  Tensor features = {};  // [rows, ...], of the parameters' type
  Tensor targets = {};   // i32 [rows, groups]
  Tensor values = {};    // [rows, ...], of the parameters' type
  Tensor weights = {};   // as targets, of the parameters' type
  std::int64_t head = 0;
  /// The rows that have a counted target, where the batch lists them, and what they are to say. A
  /// row that fills the list up is row 0, with nothing to say.
  struct Counted {
    Tensor rows = {};                   // i32 [n]
    Tensor targets = {}, weights = {};  // [n, groups], as those of all rows
  } counted = {};

  /// Another batch of the same shape (nn/training/step_shape.h), into the same memory.
  void assign(const Batch& batch);

 private:
  void assign_counted(const Batch& batch);
};
/// `master`: the type of parameters and losses, f32 or f64.
PlacedBatch place(Backend& backend, const Batch& batch, DType master);

}  // namespace longhand::nn
