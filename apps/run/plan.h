#pragma once

#include <cstdint>
#include <string>

#include "apps/run/config.h"
#include "nn/batch.h"

namespace longhand::app {

/// A one-line summary of a training: number and size of the steps, minimum time, size of a
/// checkpoint, and free disk space. `batch` is one of the batches of a step, `done` is the number
/// of completed steps, and `peak` is the machine's operations per second (0: unknown).
std::string plan_line(const Config& config, const nn::Decoder& model, const nn::Batch& batch,
                      std::int64_t done, double peak, const std::filesystem::path& folder);

/// The work of a training: the number of parameters, the number of steps, and the number of
/// multiplications and additions in all steps, as counted by nn/models/work.h. Evaluations are not
/// counted, and every step is assumed to cost as much as the first one. To determine these numbers,
/// no memory is allocated for the model and nothing is computed with it.
struct TrainingWork {
  std::int64_t parameters = 0, steps = 0;
  double operations = 0;
};
TrainingWork training_work(const Config& config);

/// Formats a duration, such as "45 s", "12 min", "3.5 h" or "2.1 days".
std::string time_in_words(double seconds);

}  // namespace longhand::app
