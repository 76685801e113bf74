#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"

/// Shared by the recipes of task hinting: decoders without positions that sort numbers or add one,
/// with and without hints and tempered softmax.
namespace longhand::app {

/// A model of the paper. `set` is the paper's size of its training set, which scales divide.
struct HintingModel {
  std::string task = "sorting";
  std::string hint = "none";
  bool tempered = false;
  std::string set = "160M";  // 1M, 10M, 40M or 160M
  int layers = 2;
  bool repetitions = false;  // in a tenth of the inputs
  bool copies = false;       // the successor of a number that has a copy is the copy
  std::string positions = "none";

  std::string id() const;  // name of its folder
};

/// Number of runs of a model with these options.
std::int64_t hinting_seeds(const RecipeOptions& options);
/// The run of a model at the scale and settings of the options, with seed options.seed + number.
GridRun hinting_run(const HintingModel& model, const RecipeOptions& options,
                    std::int64_t number = 0);
/// The runs of every model, one per seed.
std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options);

/// The tests of a scale.
struct HintingTests {
  std::int64_t samples = 0;           // per point
  std::vector<std::int64_t> columns;  // lengths in place of the paper's 50 and 100
  std::string lengths;                // of a sweep
  std::string repeated_lengths;       // of a sweep over rep(i, r)
};
HintingTests hinting_tests(Scale scale);
/// Seed of the test samples, far from the seeds of runs, from which evaluations during training
/// draw samples.
std::uint64_t hinting_test_seed(const RecipeOptions& options);

/// A model's run at its last checkpoint.
LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options,
                       std::int64_t number = 0);
/// The points of a sweep, for each run of a model.
using ScoredRuns = std::vector<std::vector<SweepPoint>>;
/// Scores a model's runs at their last checkpoints, decoded, at every point of the axes.
ScoredRuns score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                         const RecipeOptions& options);

/// Recipes whose finished runs the others reuse.
std::span<const std::string_view> hinting_recipes();

/// Adds the share of right sequences at a point, averaged over runs; with several runs, also the
/// share of each, for the JSON only.
void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               const ScoredRuns& runs, std::size_t point, std::optional<double> paper = {});

/// A metric's mean over runs against the first axis, one chart for several models. The band is the
/// range of runs; for a single run, the interval.
std::string model_chart(const std::vector<std::pair<std::string, ScoredRuns>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric);

/// A description of the intervals.
std::string how_intervals(const RecipeOptions& options);
/// A description of how answers are scored.
std::string how_scored(const RecipeOptions& options);
/// Adds, as HTML, what is counted and how a scale differs from the paper's.
void add_notes(RecipeResult& result, const std::string& counted, const RecipeOptions& options);

/// A recipe over models, for tables and figures of accuracies.
struct HintingRecipe {
  std::string id, summary;
  std::function<std::vector<HintingModel>(Scale)> models;
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  std::int64_t seeds = 0;  // runs of a model unless --seeds is given; 0: as the scale says
};
Recipe hinting_recipe(HintingRecipe recipe);

}  // namespace longhand::app
