#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/models/sampling.h"

namespace longhand::nn {

/// Teacher forcing: the most likely class (the lowest of equal ones) at every token of the batch
/// and for every group, given the batch's own tokens. Targets are ignored.
std::vector<std::int32_t> predict(Decoder& decoder, const Batch& batch);

struct GenerateOptions {
  std::int64_t most = 0;                     // maximum new tokens per prompt
  std::vector<std::int64_t> most_each = {};  // maximum for each prompt; empty: `most` for all
  std::vector<std::int32_t> stops = {};      // tokens that end a sequence
  std::int64_t head = 0;                     // the output layer
  Sampling sampling = {};
  /// Token n of sequence i is drawn from the stream (seed, sampling, i, n).
  std::uint64_t seed = 0;
  /// Called with each chosen token. If it returns false, the sequence ends with this token. The
  /// log-probability is 0 unless `probabilities` is set.
  std::function<bool(std::size_t sequence, const Choice& choice)> said = {};
  bool probabilities = false;
  /// Positions of the first `count` tokens of sequence i, for models with given positions. `room`:
  /// the maximum number of tokens. Positions of earlier tokens must not change.
  std::function<std::vector<std::int32_t>(std::size_t sequence,
                                          std::span<const std::int32_t> tokens, std::int64_t room)>
      positions = {};
};

/// Continues every prompt token by token with a key/value cache. Prompts of different lengths are
/// decoded together, and finished ones cost nothing. Returns the new tokens, including the stop
/// token.
std::vector<std::vector<std::int32_t>> generate(Decoder& decoder,
                                                std::span<const std::vector<std::int32_t>> prompts,
                                                const GenerateOptions& options);

/// Reads sequences in which some tokens are the model's own. At each output o of asked[i], in
/// ascending order, the most likely next token replaces token o + 1 of sequence i. Uses a key/value
/// cache; sequences of different lengths are decoded together. Returns the predictions at the asked
/// outputs. `reference` and `positions` are per sequence, and may be empty.
std::vector<std::vector<std::int32_t>> decode_asked(
    Decoder& decoder, std::span<const std::vector<std::int32_t>> sequences,
    std::span<const std::vector<std::int32_t>> asked, std::int64_t head = 0,
    std::span<const std::vector<ReferencePair>> reference = {},
    std::span<const std::vector<std::int32_t>> positions = {});

}  // namespace longhand::nn
