#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nn/decoder.h"
#include "tasks/task.h"

namespace longhand::app {

/// How a model's answers are read.
enum class Reading {
  forced,   // it sees the sample's own tokens (teacher forcing)
  decoded,  // it sees what it said before in place of what was asked
};
std::optional<Reading> reading_from_name(std::string_view name);  // forced, decoded

struct EvaluationOptions {
  std::int64_t samples = 200;
  std::int64_t tokens_at_once = 8192;  // about so many in a batch
  std::uint64_t seed = 1;
  Reading reading = Reading::forced;
};

/// Scores a model on samples of a task: number i from the stream (seed, evaluation, 0, i), so every
/// model and every step sees the same ones.
tasks::Tally evaluate(nn::Decoder& model, const tasks::Task& task,
                      const EvaluationOptions& options);

/// A share with its 95% interval as one prints it: "0.9375 [0.9120, 0.9560]"; another metric's
/// mean.
std::string text_of(const tasks::Metric& metric);

}  // namespace longhand::app
