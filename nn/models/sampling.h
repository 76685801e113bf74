#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"

namespace longhand::nn {

/// How the next token is chosen from a model's logits. The settings are applied in the order they
/// stand in; with a temperature of 0 the likeliest token is chosen (the lowest among equals).
struct Sampling {
  /// Logits of tokens that came before are divided by it, or multiplied where negative.
  double repetition_penalty = 1;
  double temperature = 0;  // divides the logits
  std::int64_t top_k = 0;  // only the k likeliest; 0: all
  double top_p = 1;        // of those the fewest that have this probability together
  double min_p = 0;        // of those the ones at least this likely beside the likeliest

  /// The likeliest of all, whatever came before.
  bool greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

struct Choice {
  std::int32_t token = 0;
  double log_probability = 0;  // as the model has it, before any setting
};

/// `before`: all tokens so far. One number is drawn from the stream unless the temperature is 0.
Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
              const Sampling& sampling, Rng& rng);

}  // namespace longhand::nn
