#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/models/sampling.h"

namespace longhand::nn {

/// Predictions under teacher forcing: the most likely class (the lowest of equal ones) for every
/// token of the batch and every group, given the batch's own tokens. Targets are ignored.
std::vector<std::int32_t> predict(Decoder& decoder, const Batch& batch);

struct GenerateOptions {
  std::int64_t most = 0;  // maximum number of new tokens per prompt
  /// Maximum number of new tokens of each prompt; if empty, `most` applies to every prompt.
  std::vector<std::int64_t> most_each = {};
  std::vector<std::int32_t> stops = {};  // tokens that end a sequence
  std::int64_t head = 0;                 // index of the output layer
  Sampling sampling = {};
  /// Token n of sequence i is drawn from the random stream (seed, sampling, i, n).
  std::uint64_t seed = 0;
  /// Called with each generated token. If it returns false, the sequence ends with this token. The
  /// log-probability is 0 unless `probabilities` is set.
  std::function<bool(std::size_t sequence, const Choice& choice)> said = {};
  bool probabilities = false;
  /// Returns the position ids of the first `count` tokens of sequence i, for models that are given
  /// position ids. `room` is the maximum number of tokens. Position ids of earlier tokens must not
  /// change.
  std::function<std::vector<std::int32_t>(std::size_t sequence,
                                          std::span<const std::int32_t> tokens, std::int64_t room)>
      positions = {};
};

/// Continues every prompt token by token with a key/value cache. Prompts of different lengths are
/// decoded together, and finished sequences take no time. Returns the new tokens, including a stop
/// token.
std::vector<std::vector<std::int32_t>> generate(Decoder& decoder,
                                                std::span<const std::vector<std::int32_t>> prompts,
                                                const GenerateOptions& options);

/// Reads sequences in which some tokens are replaced by the model's own predictions. At each output
/// o in asked[i], in ascending order, the most likely next token replaces token o + 1 of sequence
/// i. Uses a key/value cache; sequences of different lengths are decoded together. Returns the
/// predictions at these outputs. `reference` and `positions` have one entry per sequence, or are
/// empty.
std::vector<std::vector<std::int32_t>> decode_asked(
    Decoder& decoder, std::span<const std::vector<std::int32_t>> sequences,
    std::span<const std::vector<std::int32_t>> asked, std::int64_t head = 0,
    std::span<const std::vector<ReferencePair>> reference = {},
    std::span<const std::vector<std::int32_t>> positions = {});

}  // namespace longhand::nn
