#pragma once

#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Functions shared by the First-After-Last recipes. A GPT with rotary positions, once with and
/// once without FAL heads, is trained on Flip-Flop and Cycle Tracing.
namespace longhand::app {

struct Experiment {
  struct Column {
    std::string distribution, title;
    double paper_baseline = 0, paper_fal = 0;
  };
  std::string name;                         // name of the task
  std::string baseline, fal;                // the heads of a layer in either model
  std::span<const ScaledSetting> settings;  // settings of both models
  std::string metric;                       // metric shown in the table
  /// A second metric, over parts of a sample, such as "reads". It is shown next to the first.
  std::string part_metric = {};
  std::vector<Column> columns;
  bool decoded = false;        // the table shows free decoding; teacher forcing is shown too
  std::int64_t fal_seeds = 3;  // runs of the FAL model at the laptop scale; the plain model has 3
};
Experiment flip_flop_experiment();
Experiment cycle_tracing_experiment(Scale scale);

/// Number of runs of the FAL model, or of the plain model, with these options.
std::int64_t fal_seeds(const Experiment& experiment, bool fal, const RecipeOptions& options);
/// The run of the plain or the FAL model of an experiment, with seed options.seed + number.
GridRun fal_run(const Experiment& experiment, bool fal, const RecipeOptions& options,
                std::int64_t number = 0);
/// The runs of the plain model for all seeds, then those of the FAL model.
std::vector<GridRun> fal_runs(const Experiment& experiment, const RecipeOptions& options);

}  // namespace longhand::app
