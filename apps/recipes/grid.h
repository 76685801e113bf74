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

/// Recipes that consist of independent runs, each in its own folder under the recipe's.
namespace longhand::app {

/// A recipe that trains a grid of runs and then makes its table from them.
struct GridRecipe {
  std::string id, summary;
  std::map<Scale, std::string> scales;
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs;
  /// Adds rows and sections, after every run has finished.
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  std::span<const std::string_view> reuse_from = {};  // recipes whose finished runs it reuses
  std::vector<std::string> takes = {};                // see Recipe
};
Recipe grid_recipe(GridRecipe grid);

/// The settings that a recipe's run begins with: the defaults, or another run's model under a task.
/// Its rates are those at the end of a step, with which the published results were made.
Config recipe_config(std::string_view task);
Config recipe_config(const Config& run, std::string_view task);

/// A setting's value at each scale; "": its default. At the extended scale a setting has its value
/// of the laptop scale unless it is given one.
struct ScaledSetting {
  const char *key, *smoke, *laptop, *paper, *extended = nullptr;

  std::string at(Scale scale) const;
};
void set_all(Config& config, std::span<const ScaledSetting> settings, Scale scale);
void set_all(Config& config, const Settings& settings);
/// Sets the seed of a model's run with this number, and returns it.
std::uint64_t set_seed(Config& config, const RecipeOptions& options, std::int64_t number);

/// A new run of this configuration, or the one that the folder holds already; refused where that is
/// of another configuration. A new one begins with a checkpoint of the run `start`: of
/// `start_step`, or the best one.
RunFolder open_or_create(const std::filesystem::path& path, const Config& config,
                         const std::optional<std::filesystem::path>& start = {},
                         std::optional<std::int64_t> start_step = {});

/// The folder of a run: under this recipe's, or under that of another recipe at the same scale that
/// has finished the same run.
std::filesystem::path run_path(const GridRun& run, const RecipeOptions& options,
                               std::span<const std::string_view> reuse_from = {});

std::vector<std::filesystem::path> run_paths(std::span<const GridRun> runs,
                                             const RecipeOptions& options,
                                             std::span<const std::string_view> reuse_from = {});

/// A run's model after its last step.
LoadedRun load_finished(const GridRun& run, const RecipeOptions& options,
                        std::span<const std::string_view> reuse_from = {});

/// Trains or resumes each run. Returns false if a signal stopped it.
bool train_runs(std::span<const GridRun> runs, const RecipeOptions& options,
                std::span<const std::string_view> reuse_from = {});

/// A hash of the values of a run's best checkpoint, for the names of runs that start from it.
std::string mark_of(const std::filesystem::path& run);

/// "2/8": the second of eight parts of a list, with the runs number 2, 10, 18, ...
struct GridPart {
  std::size_t part = 1, parts = 1;
};
std::optional<GridPart> parse_part(std::string_view text);
/// Indices, from 0, of the part's elements among `count`.
std::vector<std::size_t> part_of(std::size_t count, GridPart part);
std::vector<GridRun> part_of(std::span<const GridRun> runs, GridPart part);

/// Number of runs of a model, with consecutive seeds: --seeds, or the scale's default.
std::int64_t seeds_of(const RecipeOptions& options, std::int64_t smoke, std::int64_t laptop,
                      std::int64_t paper);

/// The mean of one value per run with its 95% interval, mean +- t s / sqrt(n) by Student's t for n
/// values; no interval for a single value.
struct MeanOverRuns {
  double mean = 0;
  std::optional<double> low = {}, high = {};
};
MeanOverRuns mean_over(std::span<const double> values);

/// A row with the mean over runs and its interval, clipped to [least, most]. For a single run,
/// Wilson's interval if `of` choices were counted.
Row row_of(const std::string& row, const std::string& column, std::span<const double> values,
           std::optional<double> paper, std::int64_t of = 0);
/// Adds such a row and returns it. With several runs, also adds the row of each run, for the JSON
/// only.
Row add_row(RecipeResult& result, const std::string& row, const std::string& column,
            std::span<const double> values, std::optional<double> paper, std::int64_t of = 0);
/// A description of the intervals of such rows.
std::string how_intervals(std::int64_t runs);

/// "training.rate = 3e-3", one line per setting in which a run of the same task differs.
std::string differences(const Config& from, const Config& config);
/// The configuration of the first run of each task, and how the others differ from it.
std::string configurations(std::span<const std::filesystem::path> runs);

}  // namespace longhand::app
