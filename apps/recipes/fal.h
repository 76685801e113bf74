#pragma once

#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Functions shared by the recipes of the First-After-Last (FAL) paper (a recipe is the program of
/// one table or figure). A GPT with rotary positions, once with and once without FAL heads, is
/// trained on Flip-Flop and Cycle Tracing.
namespace longhand::app {

struct Experiment {
  struct Column {
    std::string distribution, title;
    double paper_baseline = 0, paper_fal = 0;
  };
  std::string name;           // name of the task
  std::string baseline, fal;  // heads of a layer: in the plain model, and in the FAL model
  std::span<const ScaledSetting> settings;  // settings of both models
  std::string metric;                       // metric shown in the table
  /// A second metric, over parts of a sample, such as "reads". The table shows it next to `metric`.
  std::string part_metric = {};
  std::vector<Column> columns;
  // True: the table shows scores of free decoding, and next to them scores of teacher forcing.
  bool decoded = false;
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
