#pragma once

#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// What the recipes of First-After-Last share: a GPT with rotary positions and the same with FAL
/// heads, on Flip-Flop and Cycle Tracing.
namespace longhand::app {

struct Experiment {
  struct Column {
    std::string distribution, title;
    double paper_baseline = 0, paper_fal = 0;
  };
  std::string name;                         // of its task
  std::string baseline, fal;                // heads of a layer
  std::span<const ScaledSetting> settings;  // of both models
  std::string metric;                       // of the table
  std::string part_metric = {};             // of parts of a sample, beside it: "reads"
  std::vector<Column> columns;
  bool decoded = false;        // the table's figures are of decoding; forced ones are given as well
  std::int64_t fal_seeds = 3;  // runs of the FAL model at the laptop scale; 3 of the plain one
};
Experiment flip_flop_experiment();
Experiment cycle_tracing_experiment(Scale scale);

/// How many runs one of the two models has at the options.
std::int64_t fal_seeds(const Experiment& experiment, bool fal, const RecipeOptions& options);
/// A run of one of an experiment's two models at options.seed + number.
GridRun fal_run(const Experiment& experiment, bool fal, const RecipeOptions& options,
                std::int64_t number = 0);
/// Those of the plain model, then those of the FAL model, one for each seed.
std::vector<GridRun> fal_runs(const Experiment& experiment, const RecipeOptions& options);

}  // namespace longhand::app
