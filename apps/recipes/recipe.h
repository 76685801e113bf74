#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/html/page.h"
#include "apps/report.h"
#include "apps/run/config.h"
#include "apps/run/training.h"

namespace longhand::app {

/// Size of the models and of their training. The scale `extended` takes hours or days on a
/// processor, for effects that the laptop scale is too small to show. Few recipes have it, and the
/// others refuse it.
enum class Scale { smoke, laptop, paper, extended };
std::string_view name_of(Scale scale);
std::optional<Scale> scale_from_name(std::string_view name);

/// One of our results next to the paper's. `row` and `column` are the paper's names.
struct Row {
  std::string row, column;
  double value = 0;
  /// Ends of an interval. The Bounds of the result tell which interval it is.
  std::optional<double> low = {}, high = {};
  std::optional<double> paper = {};
  bool in_table = true;  // false: the row appears in the JSON only
  bool whole = false;    // the value is a whole number, such as a rank
};

/// What a row's `low` and `high` are: a 95% confidence interval, or the range over seeds.
enum class Bounds {
  confidence,  // 95% confidence interval
  seeds        // worst and best of several seeds
};
std::string_view name_of(Bounds bounds);  // "95%" or "worst to best"

/// Settings of a run's configuration: keys and values.
using Settings = std::map<std::string, std::string>;

struct RecipeOptions {
  Scale scale = Scale::smoke;
  std::uint64_t seed = 1;
  std::int64_t seeds = 0;     // runs per model; 0: the default of the scale
  std::filesystem::path out;  // folder of the runs and the report
  Settings settings = {};     // overrides settings in every run's configuration
  TrainingManner manner = {};
  /// Options that only some recipes have: the run to start from, the text to train on, the heads of
  /// the model, and the choice between a paper's two optimizers.
  std::string model = {}, text = {}, heads = {}, optimizer = {};
  /// Selected mechanisms or tasks of the recipe, such as "a,b".
  std::string mechanisms = {}, tasks = {};
};

struct RecipeResult {
  std::vector<Row> rows;
  Bounds bounds = Bounds::confidence;
  /// Folders of the runs from which the results were computed.
  std::vector<std::filesystem::path> runs = {};
  /// Sections of the report after the table: heading and HTML.
  std::vector<std::pair<std::string, std::string>> sections = {};
  /// True if a signal or the time limit stopped the recipe. Running the recipe again continues it.
  bool stopped = false;
  /// True if the recipe was stopped and `rows` and `sections` cover the finished part.
  bool partial = false;
  bool has_table = false;  // the sections contain a table, so none is made from `rows`
};

/// One of a recipe's independent runs.
struct GridRun {
  std::string name;  // name of its folder
  Config config;
  /// The run from whose checkpoint the model starts. By default, initial values are drawn from the
  /// seed.
  std::optional<std::filesystem::path> start = {};
  /// Step of the checkpoint in `start`. By default, the best checkpoint is used.
  std::optional<std::int64_t> start_step = {};

  std::int64_t last_step() const;
  std::int64_t evaluate_samples() const;
};

/// An independent piece of a recipe's work, which consists of several runs. Later runs may depend
/// on the results of earlier ones.
struct GridPiece {
  std::string name;
  std::vector<GridRun> runs;   // the runs that this piece may train
  std::function<bool()> make;  // trains the missing runs; returns false if stopped
};

/// Reproduces one table or figure of a paper.
struct Recipe {
  std::string id;                       // "paper/table", such as "fal/table1"
  std::string summary;                  // one line for the list of recipes
  std::map<Scale, std::string> scales;  // the work and duration of each scale
  std::function<RecipeResult(const RecipeOptions&)> run;
  /// The runs, if they can be trained separately. `run` then requires that all runs are finished.
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs = {};
  /// The pieces of work. They replace `runs` if some runs depend on others.
  std::function<std::vector<GridPiece>(const RecipeOptions&)> pieces = {};
  /// The options that the recipe uses. Possible options are model, text, heads, optimizer,
  /// mechanisms and tasks.
  std::vector<std::string> takes = {};
};

/// Constructing a RegisterRecipe before main() adds the recipe to recipes().
struct RegisterRecipe {
  explicit RegisterRecipe(Recipe recipe);
};
const std::map<std::string, Recipe, std::less<>>& recipes();

/// The table of a report with the paper's rows and columns. A cell has our result with its
/// interval, the paper's result if it is printed, and the result of guessing if the task has few
/// answers.
std::string comparison_table(std::string_view recipe, const std::vector<Row>& rows);

}  // namespace longhand::app
