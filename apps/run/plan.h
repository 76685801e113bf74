#pragma once

#include <cstdint>
#include <string>

#include "apps/run/config.h"
#include "nn/batch.h"

namespace longhand::app {

/// What a training is about to do, in one line: its steps and their size, the least time it can
/// take, the room that its checkpoints want and what the disk has. `part` is one of the parts of a
/// step, `done` the steps already taken, `peak` operations a second, 0: unknown.
std::string plan_line(const Config& config, const nn::Decoder& model, const nn::Batch& part,
                      std::int64_t done, double peak, const std::filesystem::path& folder);

/// A whole training: what its model has, and the multiplications and additions of all its steps, if
/// all are as its first one (nn/models/work.h says what is counted). Evaluations are not in it.
/// Nothing is computed for it, and the model takes no memory.
struct TrainingWork {
  std::int64_t parameters = 0, steps = 0;
  double operations = 0;
};
TrainingWork training_work(const Config& config);

/// "45 s", "12 min", "3.5 h" or "2.1 days".
std::string time_in_words(double seconds);

}  // namespace longhand::app
