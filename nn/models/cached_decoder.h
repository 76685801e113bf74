#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/models/decoder.h"

namespace longhand::nn {

/// The new tokens of several sequences, one sequence after another. Sequence i has lengths[i] new
/// tokens.
struct NewTokens {
  std::span<const std::int32_t> tokens, lengths;
  /// Pairs of tokens of which the first should attend to the second. ReferencePair::row is the
  /// index of the first token of a pair in `tokens`.
  std::span<const ReferencePair> reference = {};
  /// Position id of each token. If empty, a token's position is its index in its sequence.
  std::span<const std::int32_t> positions = {};
};

/// Reads new tokens of several sequences, with a cache of their earlier tokens.
///
/// If the backend can repeat recorded work (Repeat in core/backend.h), successive passes with the
/// same shape are recorded and replayed. In a replay, the host only uploads tokens, position ids
/// and lengths. With one new token per sequence, the shape changes only when a sequence ends or
/// position tables grow.
class CachedDecoder {
 public:
  enum class Wanted { likeliest, logits };

  /// `capacities` is the maximum number of tokens of each sequence.
  CachedDecoder(Decoder& decoder, std::span<const std::int32_t> capacities, std::int64_t head,
                Wanted wanted);

  /// Reads new tokens, at least one in total. For each sequence that has new tokens, returns the
  /// prediction for the next token: the most likely class, i32 [sequences], or the logits,
  /// [sequences, classes]. If several classes are equally likely, the lowest class is returned. The
  /// next call of read() may overwrite the result.
  Tensor read(const NewTokens& fresh);

 private:
  /// Two passes with equal PassShapes have the same operations and the same tensor shapes.
  struct PassShape {
    std::int64_t tokens = 0, sequences = 0, pairs = 0;
    std::int64_t position_rows = 0;  // number of rows of the position tables
    bool operator==(const PassShape&) const = default;
  };
  void place(const NewTokens& fresh);
  void pass();

  Decoder& decoder_;
  KeyValueCache cache_;
  std::int64_t head_;
  Wanted wanted_;

  PassShape shape_ = {};
  std::int64_t passes_ = 0;  // number of successive passes with the shape `shape_` so far
  Input input_ = {};
  // last_: for each sequence with new tokens, the index of its last token among all new tokens.
  // next_: the tensor that read() returns.
  Tensor last_, next_;
  std::unique_ptr<Repeat> repeat_;
};

}  // namespace longhand::nn
