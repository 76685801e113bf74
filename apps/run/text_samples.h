#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "core/json.h"
#include "nn/models/decoder.h"

namespace longhand::app {

/// Continuations of a few prompts during training, for the report. A prompt is the beginning of a
/// validation sample. If the sample is a question with an answer, the prompt is the question. Each
/// prompt is continued by a few tokens, sampled at temperature 0.8.
class TextSamples {
 public:
  explicit TextSamples(const Config& config);

  /// Returns [{"prompt": ..., "text": ...}]. Every call uses the same prompts and random numbers.
  Json of(nn::Decoder& model) const;
  /// True if the run's task is text.
  static bool wanted(const Config& config) { return config.kind().name == "text"; }

 private:
  std::unique_ptr<tasks::Task> task_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::uint64_t seed_;
};

}  // namespace longhand::app
