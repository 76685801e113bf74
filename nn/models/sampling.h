#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"

namespace longhand::nn {

/// Settings for choosing the next token from a model's logits. They are applied in the order of the
/// members. Temperature 0 selects the most likely token. If several tokens are equally likely, the
/// lowest one is selected.
struct Sampling {
  /// Penalty for tokens that already occurred: positive logits are divided by this number, and
  /// negative logits are multiplied by it.
  double repetition_penalty = 1;
  double temperature = 0;  // divides the logits
  std::int64_t top_k = 0;  // keep the k most likely tokens; 0: all
  double top_p = 1;  // of these, keep the fewest tokens with a total probability of at least top_p
  // Of these, keep the tokens whose probability is at least min_p times the highest probability.
  double min_p = 0;

  /// True if the most likely token is always chosen.
  bool greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

struct Choice {
  std::int32_t token = 0;
  double log_probability = 0;  // under the model's distribution, before any setting is applied
};

/// Chooses the next token. `before` contains all tokens so far. Draws one random number unless the
/// temperature is 0.
Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
              const Sampling& sampling, Rng& rng);

}  // namespace longhand::nn
