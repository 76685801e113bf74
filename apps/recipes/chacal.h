#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Shared by the recipes of ChaCAL's toy experiment: GPT-2 with standard layers or a ChaCAL layer,
/// on chains.
namespace longhand::app {

struct ToyModel {
  bool chacal = false;
  std::int64_t layers = 1;
  double paper_accuracy = 0, paper_loss = 0;  // from Table 1

  std::string name() const;  // name in the table
};
/// The models of Table 1 that a scale trains, ChaCAL's last.
std::vector<ToyModel> toy_models(Scale scale);

/// GPT-2 as in ChaCAL's experiments, with the settings that all trainings share.
extern const Settings chacal_gpt2;
/// A run of a model with seed options.seed + number; `more` overrides the scale's settings.
GridRun toy_run(const ToyModel& model, std::int64_t number, const RecipeOptions& options,
                const Settings& more = {});
/// The runs of every model, one per seed.
std::vector<GridRun> toy_runs(const RecipeOptions& options);

/// Accuracy (by depth if the task has it) and mean loss of a finished run on new samples.
struct ToyScore {
  tasks::Tally tally;
  double loss = 0;
  std::int64_t parameters = 0;

  double accuracy() const { return tally.at("choices").mean(); }
};
ToyScore score_toy(const GridRun& run, const RecipeOptions& options,
                   std::span<const std::string_view> reuse_from = {});

/// The mean of a figure of metrics.jsonl over the runs of a model, at each step that all of them
/// have, with minimum and maximum.
struct Curve {
  std::vector<double> steps, mean, least, most;
};
Curve curve_over(std::span<const std::filesystem::path> runs, std::string_view figure);

}  // namespace longhand::app
