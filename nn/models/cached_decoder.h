#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/models/decoder.h"

namespace longhand::nn {

/// Tokens with which sequences go on: lengths[i] of sequence i, one sequence's after another's.
struct NewTokens {
  std::span<const std::int32_t> tokens, lengths;
  std::span<const ReferencePair> reference = {};  // rows count these tokens
  std::span<const std::int32_t> positions = {};   // or empty, as in Batch
};

/// A decoder that keeps what it has read of some sequences, and reads on.
///
/// Where the backend can repeat recorded work (Repeat in core/backend.h), passes that have one
/// shape are: the host brings up tokens, positions and how long the sequences are, and the rest of
/// the pass is repeated. With one token of each sequence the shape changes when a sequence ends and
/// when tables of positions grow.
class CachedDecoder {
 public:
  enum class Wanted { likeliest, logits };

  /// Each sequence has at most so many tokens.
  CachedDecoder(Decoder& decoder, std::span<const std::int32_t> capacities, std::int64_t head,
                Wanted wanted);

  /// Reads new tokens, of which there are some. Returns what comes after each sequence that has
  /// new ones: the likeliest class, the lowest among equals, i32 [sequences]; or the logits,
  /// [sequences, classes]. The next read may write it over.
  Tensor read(const NewTokens& fresh);

 private:
  /// Passes that agree in this are the same operations on the same shapes.
  struct PassShape {
    std::int64_t tokens = 0, sequences = 0, pairs = 0;
    std::int64_t position_rows = 0;  // of tables of positions
    bool operator==(const PassShape&) const = default;
  };
  void place(const NewTokens& fresh);
  void pass();

  Decoder& decoder_;
  KeyValueCache cache_;
  std::int64_t head_;
  Wanted wanted_;

  PassShape shape_ = {};
  std::int64_t passes_ = 0;  // of this shape
  Input input_ = {};
  Tensor last_, next_;  // rows of the sequences' last tokens; what is returned
  std::unique_ptr<Repeat> repeat_;
};

}  // namespace longhand::nn
