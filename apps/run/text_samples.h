#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "core/json.h"
#include "nn/models/decoder.h"

namespace longhand::app {

/// What a model in training makes of a few prompts, for the report: beginnings of validation's
/// samples, or their questions, each continued by a few tokens drawn at a temperature of 0.8.
class TextSamples {
 public:
  explicit TextSamples(const Config& config);

  /// [{"prompt": ..., "text": ...}]: the same prompts and random numbers every time.
  Json of(nn::Decoder& model) const;
  /// Whether the run's task is text.
  static bool wanted(const Config& config) { return config.kind().name == "text"; }

 private:
  std::unique_ptr<tasks::Task> task_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::uint64_t seed_;
};

}  // namespace longhand::app
