#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"

/// Functions shared by the task-hinting recipes. Decoders without positions learn to sort numbers
/// or to add one, with and without hints and tempered softmax.
namespace longhand::app {

/// A model of the paper. `set` is the size of the paper's training set; smaller scales use a
/// fraction of it.
struct HintingModel {
  std::string task = "sorting";
  std::string hint = "none";
  bool tempered = false;
  std::string set = "160M";  // "1M", "10M", "40M" or "160M"
  int layers = 2;
  bool repetitions = false;  // a tenth of the inputs contains repeated numbers
  /// With the successor hint: the successor of a repeated number is the number itself.
  bool copies = false;
  std::string positions = "none";

  std::string id() const;  // name of the run's folder
};

/// Number of runs per model with these options.
std::int64_t hinting_seeds(const RecipeOptions& options);
/// The run of a model at the scale and with the settings of the options; its seed is options.seed +
/// number.
GridRun hinting_run(const HintingModel& model, const RecipeOptions& options,
                    std::int64_t number = 0);
/// The runs of all models and seeds.
std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options);

/// The test samples of a scale.
struct HintingTests {
  std::int64_t samples = 0;           // samples per point of a sweep
  std::vector<std::int64_t> columns;  // lengths that replace the paper's 50 and 100
  std::string lengths;                // lengths of a sweep over uniform inputs
  std::string repeated_lengths;       // lengths of a sweep over inputs rep(i, r)
};
HintingTests hinting_tests(Scale scale);
/// Seed of the test samples. It is far from the seeds of runs, with which evaluations during
/// training draw their samples.
std::uint64_t hinting_test_seed(const RecipeOptions& options);

/// Loads a model's run at its last checkpoint.
LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options,
                       std::int64_t number = 0);
/// scores[run][point] of a sweep, for the runs of one model.
using ScoredRuns = std::vector<std::vector<SweepPoint>>;
/// Scores the last checkpoints of a model's runs at every point of the axes, in free decoding.
ScoredRuns score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                         const RecipeOptions& options);

/// Names of the task-hinting recipes, which reuse each other's finished runs.
std::span<const std::string_view> hinting_recipes();

/// Adds a row with the share of correctly answered sequences at one point of a sweep, averaged over
/// runs. With several runs, also adds a row for each run; these rows appear in the JSON only.
void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               const ScoredRuns& runs, std::size_t point, std::optional<double> paper = {});

/// A chart of a metric's mean over runs against the first axis, for several models. The band is the
/// range over runs, or the 95% interval of a single run.
std::string model_chart(const std::vector<std::pair<std::string, ScoredRuns>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric);

/// A sentence for the page that describes the intervals.
std::string how_intervals(const RecipeOptions& options);
/// A sentence for the page that describes how answers are scored.
std::string how_scored(const RecipeOptions& options);
/// Adds a section that states what is counted and how the scale differs from the paper's.
void add_notes(RecipeResult& result, const std::string& counted, const RecipeOptions& options);

/// A recipe that reports accuracies of several models as a table or figure.
struct HintingRecipe {
  std::string id, summary;
  std::function<std::vector<HintingModel>(Scale)> models;
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  std::int64_t seeds = 0;  // default number of runs per model; 0: the default of the scale
};
Recipe hinting_recipe(HintingRecipe recipe);

}  // namespace longhand::app
