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

/// Recipes that are a grid of independent runs, each in a folder of its own under the recipe's.
namespace longhand::app {

/// A recipe that trains a grid of runs and then makes its table of them.
struct GridRecipe {
  std::string id, summary;
  std::map<Scale, std::string> scales;
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs;
  /// Adds rows and sections; every run has been trained to its end.
  std::function<void(const RecipeOptions&, RecipeResult&)> report;
  std::span<const std::string_view> reuse_from = {};  // recipes whose finished runs it uses
  std::vector<std::string> takes = {};                // as Recipe has it
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
/// The seed of a model's run with this number; returns it.
std::uint64_t set_seed(Config& config, const RecipeOptions& options, std::int64_t number);

/// A new run of this configuration, or the one that the folder holds already; refused where that is
/// of another configuration. A new one begins with a checkpoint of the run `start`: of
/// `start_step`, or the best one.
RunFolder open_or_create(const std::filesystem::path& path, const Config& config,
                         const std::optional<std::filesystem::path>& start = {},
                         std::optional<std::int64_t> start_step = {});

/// The folder of a run: under this recipe's, or under that of another recipe at the same scale
/// which has finished the same run.
std::filesystem::path run_path(const GridRun& run, const RecipeOptions& options,
                               std::span<const std::string_view> reuse_from = {});

std::vector<std::filesystem::path> run_paths(std::span<const GridRun> runs,
                                             const RecipeOptions& options,
                                             std::span<const std::string_view> reuse_from = {});

/// A run's model after its last step.
LoadedRun load_finished(const GridRun& run, const RecipeOptions& options,
                        std::span<const std::string_view> reuse_from = {});

/// Trains each of them, or goes on with what is there. False when a signal stopped it.
bool train_runs(std::span<const GridRun> runs, const RecipeOptions& options,
                std::span<const std::string_view> reuse_from = {});

/// What the values of a run's best checkpoint are, in a name: runs that begin with others are
/// others.
std::string mark_of(const std::filesystem::path& run);

/// "2/8": the second of eight parts of a list, whose runs are number 2, 10, 18, ...
struct GridPart {
  std::size_t part = 1, parts = 1;
};
std::optional<GridPart> parse_part(std::string_view text);
/// Of so many things, the numbers of the part's, from 0.
std::vector<std::size_t> part_of(std::size_t count, GridPart part);
std::vector<GridRun> part_of(std::span<const GridRun> runs, GridPart part);

/// How many runs, with seeds that follow one another, a model has: --seeds, or as the scale says.
std::int64_t seeds_of(const RecipeOptions& options, std::int64_t smoke, std::int64_t laptop,
                      std::int64_t paper);

/// The mean of one value a run, with its 95% interval: mean +- t s / sqrt(n) by Student's t for n
/// values; none for a single one.
struct MeanOverRuns {
  double mean = 0;
  std::optional<double> low = {}, high = {};
};
MeanOverRuns mean_over(std::span<const double> values);

/// A row with the mean over runs and its interval, kept within [least, most]; with a single run
/// Wilson's, where `of` choices were counted.
Row row_of(const std::string& row, const std::string& column, std::span<const double> values,
           std::optional<double> paper, std::int64_t of = 0);
/// Adds that row and returns it; where there are several runs also each one's, for whoever reads
/// the JSON.
Row add_row(RecipeResult& result, const std::string& row, const std::string& column,
            std::span<const double> values, std::optional<double> paper, std::int64_t of = 0);
/// What the intervals of such rows are, in words.
std::string how_intervals(std::int64_t runs);

/// "training.rate = 3e-3", a line for each setting in which a run of the same task differs.
std::string differences(const Config& from, const Config& config);
/// The configuration of the first run of each task, and in what the others differ from it.
std::string configurations(std::span<const std::filesystem::path> runs);

}  // namespace longhand::app
