#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/run_folder.h"

namespace longhand::app {

/// A run as its folder describes it, without loading its model.
struct RunSummary {
  Config config;
  std::int64_t step = 0, steps = 0;
  std::string state = {};            // finished, training or stopped
  std::string metric = {};           // main metric of the task, in its first distribution
  std::optional<double> value = {};  // its value in the last evaluation that has it
  double seconds = 0;                // duration of its steps
};
RunSummary summarize(const std::filesystem::path& run);

/// True if `train --resume` has nothing left to do: the checkpoint of the last step is there and,
/// if the configuration requires evaluations, has its score. The score is the last thing that a
/// training writes before its report.
bool is_finished(const std::filesystem::path& run, std::int64_t steps,
                 std::int64_t evaluate_samples);
bool is_finished(const std::filesystem::path& run, const Config& config);

/// The main metric's value in a run's evaluation after a step, if there is one.
std::optional<double> score_after(const std::filesystem::path& run, std::int64_t step);

/// Mean loss of the last tenth of the steps up to this one; infinite if there is none.
double loss_before(const std::filesystem::path& run, std::int64_t step);

/// The folders that hold a run (config.ini), and what could not be looked at.
struct FoundRuns {
  std::vector<std::filesystem::path> runs;  // sorted
  std::vector<std::string> skipped;         // a message for each, at most 100
};

/// Finds runs in a folder and below it, but not inside a run. Only the last part of a path may be a
/// link, and only if links are followed: no loop of links is entered.
FoundRuns runs_below(const std::filesystem::path& folder, Links links = Links::follow);

}  // namespace longhand::app
