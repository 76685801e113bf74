#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"

/// Functions shared by the recipes of the task-hinting paper (a recipe is the program of one table
/// or figure). Decoders without positions learn to sort numbers or to add one, with and without
/// hints (auxiliary tasks that are trained together with the main task) and tempered softmax.
namespace longhand::app {

/// A model of the task-hinting paper. `set` is the size of the paper's training set; smaller scales
/// use a fraction of it.
struct HintingModel {
  std::string task = "sorting";
  std::string hint = "none";
  bool tempered = false;
  // Size of the paper's training set: "1M", "10M", "40M" or "160M".
  std::string set = "160M";
  int layers = 2;
  bool repetitions = false;  // true: a tenth of the inputs has repeated numbers
  /// For the successor hint, true means that the successor of a number that occurs more than once
  /// is the number itself.
  bool copies = false;
  std::string positions = "none";

  std::string id() const;  // name of the run's folder
};

/// Number of runs per model with these options.
std::int64_t hinting_seeds(const RecipeOptions& options);
/// The run that trains a model at options.scale, with the settings in options.settings and with
/// seed options.seed + number.
GridRun hinting_run(const HintingModel& model, const RecipeOptions& options,
                    std::int64_t number = 0);
/// The runs of all models and seeds.
std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options);

/// The test samples of a scale.
struct HintingTests {
  std::int64_t samples = 0;           // samples per tested length
  std::vector<std::int64_t> columns;  // lengths that replace the paper's 50 and 100
  std::string lengths;                // tested lengths of inputs with uniform numbers
  std::string repeated_lengths;       // tested lengths of inputs with repeated numbers
};
HintingTests hinting_tests(Scale scale);
/// Seed of the test samples. It is far from the seeds of the runs. Evaluations during training draw
/// their samples with the seeds of the runs, so the test samples are new.
std::uint64_t hinting_test_seed(const RecipeOptions& options);

/// Loads a model from the last checkpoint of its run number `number`.
LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options,
                       std::int64_t number = 0);
/// Scores of the runs of one model: scores[run][point], where a point is one tested combination of
/// option values, such as a length.
using ScoredRuns = std::vector<std::vector<SweepPoint>>;
/// Scores the last checkpoints of a model's runs, in free decoding, at every combination of the
/// option values in `axes`, such as several lengths.
ScoredRuns score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                         const RecipeOptions& options);

/// Names of the task-hinting recipes, which reuse each other's finished runs.
std::span<const std::string_view> hinting_recipes();

/// Adds a row with the share of correctly answered sequences, averaged over runs, at index `point`
/// of each run's scores. With several runs, also adds a row for each run; these rows appear in the
/// JSON only.
void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               const ScoredRuns& runs, std::size_t point, std::optional<double> paper = {});

/// A chart with one curve per model: the mean of a metric over runs against the option of the first
/// axis. The band is the range over runs, or the 95% interval of a single run.
std::string model_chart(const std::vector<std::pair<std::string, ScoredRuns>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric);

/// A sentence for the results page that describes the confidence intervals in its table and charts.
std::string how_intervals(const RecipeOptions& options);
/// A paragraph for the results page that describes how answers are scored.
std::string how_scored(const RecipeOptions& options);
/// Adds a section that explains the results. It consists of the text `counted`, which describes the
/// measured values, and of notes on how the scale differs from the paper's.
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
