#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/recipes/recipe.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_folder.h"

/// Helpers for recipes that consist of independent runs (a recipe is the program of one table or
/// figure of a paper, a run is one training). Each run has its own folder under the recipe's
/// folder.
namespace longhand::app {

/// A recipe that trains a grid of runs and then makes its table from them.
struct GridRecipe {
  std::string id, summary;
  std::map<Scale, std::string> scales;
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs;
  /// Adds rows and sections to the result, after every run has finished.
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  /// Recipes whose finished runs this recipe reuses.
  std::span<const std::string_view> reuse_from = {};
  /// Names of the options that the recipe uses, such as "tasks".
  std::vector<std::string> takes = {};
};
Recipe grid_recipe(GridRecipe grid);

/// The initial configuration of a recipe's run on a task. The model has the default settings or, in
/// the second function, the settings of another run's model. training.rate_at is "end", because our
/// published results were made with this setting.
Config recipe_config(std::string_view task);
Config recipe_config(const Config& run, std::string_view task);

/// The value of a setting at each scale. "" stands for the setting's default. If `extended` is
/// null, the extended scale has the value of the laptop scale.
struct ScaledSetting {
  const char *key, *smoke, *laptop, *paper, *extended = nullptr;

  std::string at(Scale scale) const;
};
void set_all(Config& config, std::span<const ScaledSetting> settings, Scale scale);
void set_all(Config& config, const Settings& settings);
/// Sets the seed of run number `number` of a model to options.seed + number. Returns the seed.
std::uint64_t set_seed(Config& config, const RecipeOptions& options, std::int64_t number);

/// Creates a run with this configuration, or opens the run that the folder already contains. Throws
/// an Error if that run has another configuration. If `start` is given, a new run starts from a
/// checkpoint of the run in that folder: the checkpoint of step `start_step` or, by default, the
/// best one.
RunFolder open_or_create(const std::filesystem::path& path, const Config& config,
                         const std::optional<std::filesystem::path>& start = {},
                         std::optional<std::int64_t> start_step = {});

/// The folder of a run. If a recipe in `reuse_from` has finished the same run at the same scale,
/// this is the run's folder in that recipe. Otherwise, it is the run's folder in this recipe.
std::filesystem::path run_path(const GridRun& run, const RecipeOptions& options,
                               std::span<const std::string_view> reuse_from = {});

std::vector<std::filesystem::path> run_paths(std::span<const GridRun> runs,
                                             const RecipeOptions& options,
                                             std::span<const std::string_view> reuse_from = {});

/// Loads the model of a finished run as it was after the last step.
LoadedRun load_finished(const GridRun& run, const RecipeOptions& options,
                        std::span<const std::string_view> reuse_from = {});

/// Trains or resumes every run that is not finished. Returns false if a signal or the time limit
/// stopped the training.
bool train_runs(std::span<const GridRun> runs, const RecipeOptions& options,
                std::span<const std::string_view> reuse_from = {});

/// A hash of the values in a run's best checkpoint. It becomes part of the names of runs that start
/// from that checkpoint.
std::string mark_of(const std::filesystem::path& run);

/// One of several parts of a list: "2/8" is the second of eight parts. It contains elements number
/// 2, 10, 18, ...
struct GridPart {
  std::size_t part = 1, parts = 1;
};
std::optional<GridPart> parse_part(std::string_view text);
/// The elements that belong to a part of a list. The first function returns their indices in a list
/// of `count` elements, the second one returns the elements themselves, which are runs.
std::vector<std::size_t> part_of(std::size_t count, GridPart part);
std::vector<GridRun> part_of(std::span<const GridRun> runs, GridPart part);

/// Number of runs per model, with consecutive seeds: the value of --seeds, or the default of the
/// scale.
std::int64_t seeds_of(const RecipeOptions& options, std::int64_t smoke, std::int64_t laptop,
                      std::int64_t paper);

/// The mean of n values, one per run. Its 95% interval is mean +- t s / sqrt(n), where s is the
/// standard deviation of the values and t the quantile of Student's t distribution. A single value
/// has no interval.
struct MeanOverRuns {
  double mean = 0;
  std::optional<double> low = {}, high = {};
};
MeanOverRuns mean_over(std::span<const double> values);

/// A table row with the mean over runs and the interval of the mean (MeanOverRuns). There are two
/// kinds of values:
/// - shares, such as the share of right answers. `of` is the number of cases in each run, such as
///   the number of answers. The interval is clipped to [0, 1]. A single run has Wilson's interval.
/// - all other values. `of` is 0.
Row row_of(const std::string& row, const std::string& column, std::span<const double> values,
           std::optional<double> paper, std::int64_t of = 0);
/// Adds the row of row_of() to the result and returns the row. With several runs, also adds a row
/// for each run; these rows appear in the JSON only.
Row add_row(RecipeResult& result, const std::string& row, const std::string& column,
            std::span<const double> values, std::optional<double> paper, std::int64_t of = 0);
/// A sentence for the results page that describes the intervals of rows made by row_of().
std::string how_intervals(std::int64_t runs);

/// The settings in which two runs of the same task differ, one line each: "training.rate = 3e-3".
std::string differences(const Config& from, const Config& config);
/// The configuration of the first run of each task, and how the other runs differ from it.
std::string configurations(std::span<const std::filesystem::path> runs);

}  // namespace longhand::app
