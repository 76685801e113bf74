#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/models/decoder.h"

namespace longhand::nn {

/// New tokens of several sequences, concatenated. Sequence i has lengths[i] of them.
struct NewTokens {
  std::span<const std::int32_t> tokens, lengths;
  std::span<const ReferencePair> reference = {};  // rows are indices into `tokens`
  std::span<const std::int32_t> positions = {};   // position ids; may be empty, see Batch
};

/// A decoder with a cache for several sequences, which reads their new tokens.
///
/// If the backend can repeat recorded work (Repeat in core/backend.h), passes with the same shape
/// are replayed: the host only uploads tokens, position ids and lengths. With one token per
/// sequence, the shape changes when a sequence ends and when position tables grow.
class CachedDecoder {
 public:
  enum class Wanted { likeliest, logits };

  /// `capacities` are the maximum numbers of tokens of the sequences.
  CachedDecoder(Decoder& decoder, std::span<const std::int32_t> capacities, std::int64_t head,
                Wanted wanted);

  /// Reads new tokens, at least one. Returns the prediction after each sequence that has new
  /// tokens: the most likely class (the lowest of equal ones), i32 [sequences], or the logits,
  /// [sequences, classes]. The next read may overwrite the result.
  Tensor read(const NewTokens& fresh);

 private:
  /// Passes with equal members run the same operations on the same shapes.
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
  std::int64_t passes_ = 0;  // number of passes of this shape so far
  Input input_ = {};
  Tensor last_, next_;  // last_: rows of the sequences' last tokens; next_: the result
  std::unique_ptr<Repeat> repeat_;
};

}  // namespace longhand::nn
