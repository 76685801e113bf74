#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"

/// Functions shared by the recipes of the toy experiment in the ChaCAL paper (a recipe is the
/// program of one table or figure). GPT-2 models with one to five standard attention layers, or
/// with one ChaCAL layer, are trained on chains of references.
namespace longhand::app {

struct ToyModel {
  bool chacal = false;
  std::int64_t layers = 1;
  double paper_accuracy = 0, paper_loss = 0;  // results in the paper's Table 1

  std::string name() const;  // name in the table, such as "ChaCAL L=1"
};
/// The models of Table 1 that are trained at a scale; the ChaCAL model is the last.
std::vector<ToyModel> toy_models(Scale scale);

/// The settings of GPT-2 in ChaCAL's experiments, which all runs share.
extern const Settings chacal_gpt2;
/// The run that trains a model with seed options.seed + number. The settings in `more` override
/// those of options.scale.
GridRun toy_run(const ToyModel& model, std::int64_t number, const RecipeOptions& options,
                const Settings& more = {});
/// The runs of all models and seeds.
std::vector<GridRun> toy_runs(const RecipeOptions& options);

/// Scores of a finished run on new samples: the mean loss and the accuracy. If the task counts
/// depths (the number of references to follow), `tally` also has the accuracy at each depth.
struct ToyScore {
  tasks::Tally tally;
  double loss = 0;
  std::int64_t parameters = 0;

  double accuracy() const { return tally.at("choices").mean(); }
};
ToyScore score_toy(const GridRun& run, const RecipeOptions& options,
                   std::span<const std::string_view> reuse_from = {});

/// A value that runs write to metrics.jsonl, such as "train/choices", over several runs of a model:
/// its mean, minimum and maximum at each step for which all runs have written it.
struct Curve {
  std::vector<double> steps, mean, least, most;
};
Curve curve_over(std::span<const std::filesystem::path> runs, std::string_view figure);

}  // namespace longhand::app
