#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Functions shared by the recipes of ChaCAL's toy experiment: GPT-2 models with standard attention
/// layers or with a ChaCAL layer, trained on chains.
namespace longhand::app {

struct ToyModel {
  bool chacal = false;
  std::int64_t layers = 1;
  double paper_accuracy = 0, paper_loss = 0;  // results in the paper's Table 1

  std::string name() const;  // the model's name in the table
};
/// The models of Table 1 that are trained at a scale; the ChaCAL model is the last.
std::vector<ToyModel> toy_models(Scale scale);

/// The settings of GPT-2 in ChaCAL's experiments, which all runs share.
extern const Settings chacal_gpt2;
/// The run of a model with seed options.seed + number. `more` overrides the settings of the scale.
GridRun toy_run(const ToyModel& model, std::int64_t number, const RecipeOptions& options,
                const Settings& more = {});
/// The runs of all models and seeds.
std::vector<GridRun> toy_runs(const RecipeOptions& options);

/// Scores of a finished run on new samples: the mean loss and the accuracy. If the task defines
/// depths, also the accuracy at each depth.
struct ToyScore {
  tasks::Tally tally;
  double loss = 0;
  std::int64_t parameters = 0;

  double accuracy() const { return tally.at("choices").mean(); }
};
ToyScore score_toy(const GridRun& run, const RecipeOptions& options,
                   std::span<const std::string_view> reuse_from = {});

/// A figure of metrics.jsonl over the runs of a model: its mean, minimum and maximum at each step
/// that occurs in all runs.
struct Curve {
  std::vector<double> steps, mean, least, most;
};
Curve curve_over(std::span<const std::filesystem::path> runs, std::string_view figure);

}  // namespace longhand::app
