#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"

namespace longhand::nn {

/// Settings to choose the next token from a model's logits, applied in this order. Temperature 0
/// selects the most likely token (the lowest of equal ones).
struct Sampling {
  /// Divides positive logits of earlier tokens, and multiplies negative ones.
  double repetition_penalty = 1;
  double temperature = 0;  // divides the logits
  std::int64_t top_k = 0;  // keeps the k most likely; 0: all
  double top_p = 1;        // of those, keeps the smallest set with this total probability
  // of those, keeps candidates with at least this share of the highest probability
  double min_p = 0;

  /// True if the most likely token is chosen, whatever tokens came before.
  bool greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

struct Choice {
  std::int32_t token = 0;
  double log_probability = 0;  // of the model, before any setting
};

/// `before`: all tokens so far. Draws one number from the stream unless the temperature is 0.
Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
              const Sampling& sampling, Rng& rng);

}  // namespace longhand::nn
