#pragma once

#include <string>

#include "apps/run/config.h"
#include "nn/batch.h"

namespace longhand::app {

/// What a training is about to do, in one line: its steps and their size, the least time it can
/// take, the room that its checkpoints want and what the disk has. `part` is one of the parts of a
/// step, `done` the steps already taken, `peak` operations a second, 0: unknown.
std::string plan_line(const Config& config, const nn::Decoder& model, const nn::Batch& part,
                      std::int64_t done, double peak, const std::filesystem::path& folder);

/// "45 s", "12 min", "3.5 h" or "2.1 days".
std::string time_in_words(double seconds);

}  // namespace longhand::app
