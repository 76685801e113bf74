#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/segments.h"
#include "nn/batch.h"

namespace longhand::nn {

/// Tokens in the backend's memory, with their position ids.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;  // largest position id + 1
  /// True if the caller passed the position ids; false if each is the token's index within its
  /// sequence.
  bool gives_positions = false;
  /// ReferencePair::row and ReferencePair::position of each pair, i32 [pairs, 2]; may be empty.
  Tensor reference = {};

  /// Overwrites this input with other tokens. The arguments are those of make_input(). The numbers
  /// of tokens, sequences and reference pairs must not change.
  void assign(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
              std::span<const std::int32_t> totals = {}, std::span<const ReferencePair> pairs = {},
              std::span<const std::int32_t> given_positions = {});
};
/// Makes an input of new tokens. Sequence i has totals[i] tokens: the last lengths[i] are new, and
/// the others are in a cache. Without `totals`, all tokens are new. Without `given_positions`, the
/// position of a token is its index within its sequence. A reference pair consists of two tokens,
/// of which the first should attend to the second. Throws an Error if the second token comes after
/// the first.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {},
                 std::span<const ReferencePair> reference = {},
                 std::span<const std::int32_t> given_positions = {});
/// Makes an input of the tokens, position ids and reference pairs of a batch.
Input make_input(Backend& backend, const Batch& batch);

/// Makes an input of one complete sequence.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens);

/// A batch in the backend's memory. A tensor is empty if the batch has no data for it.
struct PlacedBatch {
  Input input;           // the batch's tokens
  Tensor features = {};  // [rows, ...], of the type of the parameters
  Tensor targets = {};   // i32 [rows, groups]
  Tensor values = {};    // [rows, ...], of the type of the parameters
  Tensor weights = {};   // shaped like `targets`, of the type of the parameters
  std::int64_t head = 0;
  /// The rows with a scored target, as listed by Batch::counted_rows(), with their targets and
  /// weights. Entries that pad the list have row 0 and target -1.
  struct Counted {
    Tensor rows = {};                   // row indices, i32 [n]
    Tensor targets = {}, weights = {};  // [n, groups], of the n rows listed in `rows`
  } counted = {};
  // The named inputs of the batch: floats and tokens.
  std::map<std::string, Tensor> named_features = {};
  std::map<std::string, Input> named_tokens = {};

  /// features_of() returns a named input of floats, and tokens_of() a named input of tokens. Both
  /// throw an Error if the batch has no such input, or if the input has no rows or sequences.
  const Tensor& features_of(std::string_view name) const;
  const Input& tokens_of(std::string_view name) const;

  /// Overwrites this batch with another batch of the same shape (nn/training/step_shape.h).
  void assign(const Batch& batch);

 private:
  void assign_counted(const Batch& batch);
};
/// Copies a batch to the backend's memory. `master` is the type of the parameters, f32 or f64.
PlacedBatch place(Backend& backend, const Batch& batch, DType master);

}  // namespace longhand::nn
