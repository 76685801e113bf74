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

/// Options that do not affect the results of a training.
struct RunControl {
  bool quiet = false;
  bool show_config = false;  // print all settings, not only those that differ from their defaults
  std::optional<std::chrono::steady_clock::time_point> until = {};  // time at which to stop
  std::optional<int> threads = {};  // default: the value in the run's config.ini
  /// Step of the checkpoint from which to resume. By default, the latest checkpoint is used.
  std::optional<std::int64_t> from_step = {};
  /// Stop after this step, as if the time limit had been reached.
  std::optional<std::int64_t> to_step = {};
  bool scores_there = false;    // evaluate after to_step
  bool scores_at_stop = false;  // evaluate also if the time limit stops the training
  /// The step whose batches, gradients and parameters are written as arrays.
  std::optional<std::int64_t> dump_step = {};
  std::filesystem::path dump_out = {};  // output file; default: step-N.npz in the run's folder
  bool transcript = false;  // write a transcript; a resumed run continues its transcript anyway
  /// Number of steps between the states of a new transcript; 0: only at checkpoints. Default: the
  /// checkpoint interval.
  std::optional<std::int64_t> transcript_every = {};
  // The ranks that train together. Only rank 0 writes files.
  nn::Communicator* ranks = &nn::single_rank();

  bool is_over() const { return until && std::chrono::steady_clock::now() >= *until; }
};

/// Reads --quiet, --max-minutes and --threads. The minutes are counted from this call.
RunControl run_control(const Arguments& arguments);
std::vector<CliFlag> run_control_options();

struct TrainingResult {
  std::filesystem::path folder;
  std::int64_t step = 0;
  bool finished = false;         // false if a signal or the time limit stopped the training
  Json scores = Json::object();  // last evaluation: "distribution/metric" and value
};

/// Trains as the folder's config.ini describes, and writes metrics, events and checkpoints. If
/// there is a checkpoint, starts from the latest one. A signal such as SIGINT stops the training
/// after a step (nn/training/stop_signals.h).
TrainingResult train(RunFolder& folder, const RunControl& control);

}  // namespace longhand::app
