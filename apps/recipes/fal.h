#pragma once

#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Shared by the recipes of First-After-Last: a GPT with rotary positions, and the same with FAL
/// heads, on Flip-Flop and Cycle Tracing.
namespace longhand::app {

struct Experiment {
  struct Column {
    std::string distribution, title;
    double paper_baseline = 0, paper_fal = 0;
  };
  std::string name;                         // name of its task
  std::string baseline, fal;                // heads of a layer
  std::span<const ScaledSetting> settings;  // of both models
  std::string metric;                       // metric in the table
  std::string part_metric = {};             // of parts of a sample, beside it: "reads"
  std::vector<Column> columns;
  bool decoded = false;        // the table's figures are from decoding; forced ones are shown too
  std::int64_t fal_seeds = 3;  // runs of the FAL model at the laptop scale; the plain model has 3
};
Experiment flip_flop_experiment();
Experiment cycle_tracing_experiment(Scale scale);

/// Number of runs of one of the two models with these options.
std::int64_t fal_seeds(const Experiment& experiment, bool fal, const RecipeOptions& options);
/// A run of one of an experiment's two models, with seed options.seed + number.
GridRun fal_run(const Experiment& experiment, bool fal, const RecipeOptions& options,
                std::int64_t number = 0);
/// The runs of the plain model, then those of the FAL model, one per seed.
std::vector<GridRun> fal_runs(const Experiment& experiment, const RecipeOptions& options);

}  // namespace longhand::app
