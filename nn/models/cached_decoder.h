#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/models/decoder.h"

namespace longhand::nn {

/// New tokens of several sequences: lengths[i] of sequence i, concatenated.
struct NewTokens {
  std::span<const std::int32_t> tokens, lengths;
  std::span<const ReferencePair> reference = {};  // rows are indices into these tokens
  std::span<const std::int32_t> positions = {};   // may be empty, see Batch
};

/// A decoder with the cache of some sequences, which reads new tokens of them.
///
/// If the backend can repeat recorded work (Repeat in core/backend.h), passes of the same shape are
/// repeated: the host uploads tokens, positions and lengths. With one token per sequence, the shape
/// changes when a sequence ends and when tables of positions grow.
class CachedDecoder {
 public:
  enum class Wanted { likeliest, logits };

  /// `capacities`: maximum tokens of each sequence.
  CachedDecoder(Decoder& decoder, std::span<const std::int32_t> capacities, std::int64_t head,
                Wanted wanted);

  /// Reads at least one new token. Returns the prediction after each sequence with new tokens: the
  /// most likely class (the lowest of equal ones), i32 [sequences], or the logits, [sequences,
  /// classes]. The next read may overwrite it.
  Tensor read(const NewTokens& fresh);

 private:
  /// Passes with equal members run the same operations on the same shapes.
  struct PassShape {
    std::int64_t tokens = 0, sequences = 0, pairs = 0;
    std::int64_t position_rows = 0;  // rows of the tables of positions
    bool operator==(const PassShape&) const = default;
  };
  void place(const NewTokens& fresh);
  void pass();

  Decoder& decoder_;
  KeyValueCache cache_;
  std::int64_t head_;
  Wanted wanted_;

  PassShape shape_ = {};
  std::int64_t passes_ = 0;  // passes of this shape so far
  Input input_ = {};
  Tensor last_, next_;  // rows of the sequences' last tokens; the result
  std::unique_ptr<Repeat> repeat_;
};

}  // namespace longhand::nn
