#pragma once

#include <cstdint>
#include <string>

#include "apps/run/config.h"
#include "nn/batch.h"

namespace longhand::app {

/// A summary of a training in one line: its steps and their size, the minimum time, the size of its
/// checkpoints and the free disk space. `part` is one of the parts of a step, `done` the steps
/// already taken, `peak` operations per second (0: unknown).
std::string plan_line(const Config& config, const nn::Decoder& model, const nn::Batch& part,
                      std::int64_t done, double peak, const std::filesystem::path& folder);

/// The parameters of a model and the multiplications and additions of all steps, assuming that all
/// are like the first (nn/models/work.h says what is counted), without evaluations. Nothing is
/// computed, and the model takes no memory.
struct TrainingWork {
  std::int64_t parameters = 0, steps = 0;
  double operations = 0;
};
TrainingWork training_work(const Config& config);

/// "45 s", "12 min", "3.5 h" or "2.1 days".
std::string time_in_words(double seconds);

}  // namespace longhand::app
