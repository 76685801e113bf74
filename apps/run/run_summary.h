#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/run_folder.h"

namespace longhand::app {

/// A summary of a run, made from the files in its folder without loading the model.
struct RunSummary {
  Config config;
  std::int64_t step = 0, steps = 0;
  std::string state = {};            // "training" or a value of idle_state()
  std::string score = {};            // the first of ranking_scores() that the run has
  std::optional<double> value = {};  // value of `score` in the last evaluation that contains it
  /// Total duration of the run's steps. A step that metrics.jsonl lacks counts with the mean
  /// duration of the others.
  double seconds = 0;
};
/// `by` selects the score, as for ranking_scores().
RunSummary summarize(const std::filesystem::path& run, std::string_view by = {});

/// True if `train --resume` has nothing left to do. The checkpoint of the last step must exist. If
/// the configuration requires evaluations, this checkpoint must also have a score. The report,
/// which is written last, is not required.
bool is_finished(const std::filesystem::path& run, std::int64_t steps,
                 std::int64_t evaluate_samples);
bool is_finished(const std::filesystem::path& run, const Config& config);

/// The state of a run that no process is training: "finished" or "stopped". If no step was trained,
/// it may also be "imported", "repaired" or "quantized".
std::string idle_state(const Folder& run, bool finished, std::int64_t step,
                       Links links = Links::follow);

/// The value of `score` in the run's evaluation after `step`. `score` is a name from metrics.jsonl,
/// such as "ood/sequences". No value if there was no such evaluation.
std::optional<double> score_after(const std::filesystem::path& run, std::int64_t step,
                                  const std::string& score);

/// The mean loss over the last tenth of the steps up to `step`. Infinite if there are no steps.
double loss_before(const std::filesystem::path& run, std::int64_t step);

/// The folders that contain a run (a config.ini), and messages about unreadable entries.
struct FoundRuns {
  std::vector<std::filesystem::path> runs;  // sorted by path
  std::vector<std::string> skipped;         // one message per unreadable entry, at most 100
};

/// Finds the runs in a folder and below it, but not inside another run. With Links::follow, a
/// symbolic link to a run is found too. Links to other folders are not followed, so that the search
/// cannot run in cycles.
FoundRuns runs_below(const std::filesystem::path& folder, Links links = Links::follow);

}  // namespace longhand::app
