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

/// Options that do not change a training's results.
struct TrainingManner {
  bool quiet = false;
  std::optional<std::chrono::steady_clock::time_point> until = {};  // when to stop
  std::optional<int> threads = {};             // default: as in the run's config.ini
  std::optional<std::int64_t> from_step = {};  // the checkpoint to resume from; default: the latest
  std::optional<std::int64_t> to_step = {};    // step at which to stop, as if time had run out
  bool scores_there = false;                   // evaluate at to_step
  std::optional<std::int64_t> dump_step = {};  // the step to write as arrays
  std::filesystem::path dump_out = {};     // output file; default: step-N.npz in the run's folder
  nn::Communicator* ranks = &nn::alone();  // ranks that train together; rank 0 writes

  bool is_over() const { return until && std::chrono::steady_clock::now() >= *until; }
};

/// Reads --quiet, --max-minutes and --threads; the minutes count from this call.
TrainingManner manner_from(const Arguments& arguments);
std::vector<Option> manner_options();

struct TrainingResult {
  std::filesystem::path folder;
  std::int64_t step = 0;
  bool finished = false;         // false: stopped by a signal or by the time limit
  Json scores = Json::object();  // of the last evaluation: "distribution/metric" and value
};

/// Trains what the folder's config.ini describes, from its latest checkpoint if there is one, and
/// writes metrics, events and checkpoints. Signals that ask the program to end stop the training
/// (nn/training/stop_signals.h).
TrainingResult train(RunFolder& folder, const TrainingManner& manner);

}  // namespace longhand::app
