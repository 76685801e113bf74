#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"

namespace longhand::nn {

/// Settings for choosing the next token from a model's logits. They are applied in the order of the
/// members. Temperature 0 selects the most likely token. If several tokens are equally likely, the
/// one with the lowest id is selected.
struct Sampling {
  /// Penalty for tokens that already occurred: positive logits are divided by this number, and
  /// negative logits are multiplied by it.
  double repetition_penalty = 1;
  double temperature = 0;  // logits are divided by it; 0: always choose the most likely token
  std::int64_t top_k = 0;  // only the top_k most likely tokens can be chosen; 0: all tokens
  /// Of the tokens that remain after top_k, only the most likely ones can be chosen. These are the
  /// fewest tokens whose total probability is at least top_p.
  double top_p = 1;
  /// Of the tokens that remain after top_p, only those can be chosen whose probability is at least
  /// min_p times the highest probability.
  double min_p = 0;

  /// True if the most likely token is always chosen.
  bool greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

struct Choice {
  std::int32_t token = 0;
  /// Log-probability of the token in the model's own distribution, before any setting of Sampling
  /// is applied.
  double log_probability = 0;
};

/// Chooses the next token. `before` contains all tokens so far. Draws one random number unless the
/// temperature is 0.
Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
              const Sampling& sampling, Rng& rng);

}  // namespace longhand::nn
