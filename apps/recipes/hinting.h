#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"

/// What the recipes of task hinting share: decoders without positions that sort numbers or add one,
/// with and without hints and tempered softmax.
namespace longhand::app {

/// A model of the paper. `set` is the paper's size of its training set, which scales divide.
struct HintingModel {
  std::string task = "sorting";
  std::string hint = "none";
  bool tempered = false;
  std::string set = "160M";  // 1M, 10M, 40M or 160M
  int layers = 2;
  bool repetitions = false;  // a tenth of the inputs
  bool copies = false;       // the successor of a number that has a copy is the copy
  std::string positions = "none";

  std::string id() const;  // of its folder
};

/// How many runs a model has at the options.
std::int64_t hinting_seeds(const RecipeOptions& options);
/// The run of a model at the scale and the settings of the options, and at options.seed + number.
GridRun hinting_run(const HintingModel& model, const RecipeOptions& options,
                    std::int64_t number = 0);
/// Of every model, one for each seed.
std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options);

/// What a scale tests with.
struct HintingTests {
  std::int64_t samples = 0;           // at each point
  std::vector<std::int64_t> columns;  // lengths in place of the paper's 50 and 100
  std::string lengths;                // of a sweep
  std::string repeated_lengths;       // of a sweep over rep(i, r)
};
HintingTests hinting_tests(Scale scale);
/// Names the samples of tests. Far from the seeds of runs, by which samples are drawn for
/// evaluations during training.
std::uint64_t hinting_test_seed(const RecipeOptions& options);

/// A model's run, loaded at its last checkpoint.
LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options,
                       std::int64_t number = 0);
/// Points of a sweep, in turn for each run of a model.
using ScoredRuns = std::vector<std::vector<SweepPoint>>;
/// Scores a model's runs on their last checkpoints, decoded, at every point of the axes.
ScoredRuns score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                         const RecipeOptions& options);

/// Recipes whose finished runs the others use.
std::span<const std::string_view> hinting_recipes();

/// Adds the mean over runs of the share of sequences answered right at a point; of several runs,
/// each one's share for whoever reads the JSON.
void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               const ScoredRuns& runs, std::size_t point, std::optional<double> paper = {});

/// A metric's mean over runs against the first axis, one chart for several models. The band is from
/// the least run to the greatest; of a single run, the interval.
std::string model_chart(const std::vector<std::pair<std::string, ScoredRuns>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric);

/// What stands for an interval.
std::string how_intervals(const RecipeOptions& options);
/// How answers are scored.
std::string how_scored(const RecipeOptions& options);
/// What is counted, as HTML, and where a scale is not the paper's.
void add_notes(RecipeResult& result, const std::string& counted, const RecipeOptions& options);

/// A recipe over models; those of tables and figures of accuracies.
struct HintingRecipe {
  std::string id, summary;
  std::function<std::vector<HintingModel>(Scale)> models;
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  std::int64_t seeds = 0;  // runs of a model unless --seeds is given; 0: as the scale says
};
Recipe hinting_recipe(HintingRecipe recipe);

}  // namespace longhand::app
