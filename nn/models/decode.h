#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/models/decoder.h"
#include "nn/models/sampling.h"

namespace longhand::nn {

/// Returns predictions under teacher forcing, [tokens, Batch::groups]. The logits of a token
/// consist of Batch::groups groups of classes. The prediction for a group is its most likely class.
/// The model reads the earlier tokens of the batch, not its own predictions. If several classes are
/// equally likely, the lowest one is returned. Targets are ignored.
std::vector<std::int32_t> predict(Decoder& decoder, const Batch& batch);

struct GenerateOptions {
  std::int64_t most = 0;  // maximum number of new tokens per prompt
  /// Maximum number of new tokens of each prompt; if empty, `most` applies to every prompt.
  std::vector<std::int64_t> most_each = {};
  std::vector<std::int32_t> stops = {};  // tokens that end a sequence
  /// Maximum number of tokens that the model reads at once; 0: no limit. When a sequence would
  /// exceed this number, its oldest tokens are dropped, except the first `kept` tokens. About half
  /// of the context is dropped, or less if few new tokens are still needed. The model then reads
  /// the remaining tokens again.
  std::int64_t context = 0;
  std::int64_t kept = 0;
  /// Called when tokens of a sequence are dropped. `remaining` is the number of tokens that are
  /// left.
  std::function<void(std::size_t sequence, std::int64_t remaining)> dropped = {};
  std::int64_t head = 0;  // index of the output layer
  Sampling sampling = {};
  /// Seed of the random choices. The choice of token n of sequence i depends only on (seed, i, n)
  /// and the logits.
  std::uint64_t seed = 0;
  /// Called with each generated token. If it returns false, the sequence ends with this token.
  /// Unless `probabilities` is set, choice.log_probability is 0.
  std::function<bool(std::size_t sequence, const Choice& choice)> said = {};
  bool probabilities = false;
  /// For models that read position ids from their input: returns the position ids of `tokens`, the
  /// sequence's tokens so far. The sequence will have at most `room` tokens. Later calls must
  /// return the same ids for earlier tokens.
  std::function<std::vector<std::int32_t>(std::size_t sequence,
                                          std::span<const std::int32_t> tokens, std::int64_t room)>
      positions = {};
};

/// Continues every prompt token by token with a key/value cache. Prompts of different lengths are
/// decoded together, and finished sequences are not computed further. Returns the new tokens of
/// each prompt, including the stop token, if any.
std::vector<std::vector<std::int32_t>> generate(Decoder& decoder,
                                                std::span<const std::vector<std::int32_t>> prompts,
                                                const GenerateOptions& options);

/// Reads sequences and replaces some of their tokens by the model's own predictions. asked[i]
/// contains indices o in ascending order. For each index o, the most likely token after token o of
/// sequence i replaces token o + 1. Returns these predictions. Sequences of different lengths are
/// decoded together with a key/value cache. `reference` and `positions` have one entry per sequence
/// or are empty.
std::vector<std::vector<std::int32_t>> decode_asked(
    Decoder& decoder, std::span<const std::vector<std::int32_t>> sequences,
    std::span<const std::vector<std::int32_t>> asked, std::int64_t head = 0,
    std::span<const std::vector<ReferencePair>> reference = {},
    std::span<const std::vector<std::int32_t>> positions = {});

}  // namespace longhand::nn
