#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/report.h"
#include "apps/run/run_folder.h"
#include "nn/ranks/communicator.h"

namespace longhand::app {

/// What a training's results do not depend on.
struct TrainingManner {
  bool quiet = false;
  std::optional<std::chrono::steady_clock::time_point> until = {};  // then it stops
  std::optional<int> threads = {};             // none: as the run's config.ini says
  std::optional<std::int64_t> from_step = {};  // the checkpoint to go on from; none: the latest
  std::optional<std::int64_t> to_step = {};    // then it stops, as for want of time
  bool scores_there = false;                   // evaluates at to_step
  std::optional<std::int64_t> dump_step = {};  // the step that is written as arrays
  std::filesystem::path dump_out = {};         // where; empty: step-N.npz in the run's folder
  nn::Communicator* ranks = &nn::alone();      // that train together; rank 0 writes

  bool is_over() const { return until && std::chrono::steady_clock::now() >= *until; }
};

/// --quiet, --max-minutes and --threads; the minutes count from this call.
TrainingManner manner_from(const Arguments& arguments);
std::vector<Option> manner_options();

struct TrainingResult {
  std::filesystem::path folder;
  std::int64_t step = 0;
  bool finished = false;         // false: stopped by a signal, or for want of time
  Json scores = Json::object();  // of the last evaluation: "distribution/metric" to value
};

/// Trains what the folder's config.ini describes, from its latest checkpoint if there is one, and
/// writes metrics, events and checkpoints into it. Meanwhile signals that ask the program to end
/// stop the training (nn/training/stop_signals.h).
TrainingResult train(RunFolder& folder, const TrainingManner& manner);

}  // namespace longhand::app
