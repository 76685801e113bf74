#pragma once

#include <map>
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
  std::string task;
  std::string baseline, fal;                    // heads of a layer
  std::map<std::string, std::string> settings;  // of both models
  std::string metric;                           // of the table
  std::vector<Column> columns;
  bool decoded = false;  // the table's figures are of decoding, forced ones stand beside them
};
Experiment flip_flop_experiment(Scale scale);
Experiment cycle_tracing_experiment(Scale scale);

/// The complete configuration of one of its two models.
Config config_of(const Experiment& experiment, bool fal, const RecipeOptions& options);
/// The folder of that run under a recipe's.
std::filesystem::path folder_of(const Experiment& experiment, bool fal,
                                const std::filesystem::path& out);

}  // namespace longhand::app
