#pragma once

#include <filesystem>
#include <string>

#include "apps/report.h"
#include "apps/run/run_folder.h"

namespace longhand::app {

struct TrainingResult {
  std::filesystem::path folder;
  std::int64_t step = 0;
  bool finished = false;         // false: stopped by a signal
  Json scores = Json::object();  // of the last evaluation: "distribution/metric" to value
};

/// Trains what the folder's config.ini describes, from its latest checkpoint if there is one, and
/// writes metrics, events and checkpoints into it.
TrainingResult train(RunFolder& folder, bool quiet);

}  // namespace longhand::app
