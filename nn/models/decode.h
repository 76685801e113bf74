#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/models/sampling.h"

namespace longhand::nn {

/// Teacher forcing: for every token of the batch, and every group, the likeliest class (the lowest
/// among equals) after what was given. Targets are not looked at.
std::vector<std::int32_t> predict(Decoder& decoder, const Batch& batch);

struct GenerateOptions {
  std::int64_t most = 0;                     // new tokens for each prompt
  std::vector<std::int64_t> most_each = {};  // or so many for each; empty: `most` for all
  std::vector<std::int32_t> stops = {};      // a sequence ends after any of these tokens
  std::int64_t head = 0;                     // output layer
  Sampling sampling = {};
  /// Number n of sequence i is chosen by the stream (seed, sampling, i, n).
  std::uint64_t seed = 0;
  /// Told each token as it is chosen; false: the sequence ends with it. The log-probability is 0
  /// unless `probabilities`.
  std::function<bool(std::size_t sequence, const Choice& choice)> said = {};
  bool probabilities = false;
  /// Positions of so many tokens, all that sequence i has by now, for models whose positions are
  /// given. `room`: the most that there will be. Those of earlier tokens must stay as they were.
  std::function<std::vector<std::int32_t>(std::size_t sequence,
                                          std::span<const std::int32_t> tokens, std::int64_t room)>
      positions = {};
};

/// Continues every prompt, token by token, with cached keys and values. Prompts of different
/// lengths go together; one that is done costs nothing more. Returns the new tokens, the stop token
/// included.
std::vector<std::vector<std::int32_t>> generate(Decoder& decoder,
                                                std::span<const std::vector<std::int32_t>> prompts,
                                                const GenerateOptions& options);

/// Reads sequences of which some tokens are the model's own: at each output o of asked[i],
/// ascending, the likeliest next token is noted and stands in place of token o + 1 of sequence i
/// for all that follows. Cached keys and values; sequences go together whatever their lengths.
/// Returns what was said at the asked outputs. `reference` and `positions`: of each sequence by
/// itself; or empty.
std::vector<std::vector<std::int32_t>> decode_asked(
    Decoder& decoder, std::span<const std::vector<std::int32_t>> sequences,
    std::span<const std::vector<std::int32_t>> asked, std::int64_t head = 0,
    std::span<const std::vector<ReferencePair>> reference = {},
    std::span<const std::vector<std::int32_t>> positions = {});

}  // namespace longhand::nn
