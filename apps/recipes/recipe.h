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

/// The size at which a recipe trains its models. The scale `extended` takes hours or days on a CPU.
/// It shows effects for which the laptop scale is too small. Few recipes have this scale; all
/// others reject it.
enum class Scale { smoke, laptop, paper, extended };
std::string_view name_of(Scale scale);
std::optional<Scale> scale_from_name(std::string_view name);

/// A measured result next to the result that the paper reports. `row` and `column` name the cell of
/// the recipe's table that contains it.
struct Row {
  std::string row, column;
  double value = 0;
  /// Ends of the interval of `value`. RecipeResult::bounds states which kind of interval it is.
  std::optional<double> low = {}, high = {};
  std::optional<double> paper = {};
  bool in_table = true;  // false: the row appears in the JSON only
  bool whole = false;    // true: the value is a whole number, such as a rank
};

/// The meaning of Row::low and Row::high: a 95% confidence interval, or the range over seeds.
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
  Settings settings = {};     // settings that replace the recipe's own in every run
  RunControl control = {};
  /// Options that only some recipes have. `model` is the run to start from, `text` the file to
  /// train on, and `heads` the kind of heads that the recipe inserts into the model. `optimizer`
  /// selects the optimizer settings of a paper's program ("published") or of its text ("text").
  std::string model = {}, text = {}, heads = {}, optimizer = {};
  /// Names of the mechanisms and of the tasks that the recipe runs, such as "a,b". Empty: the
  /// default of the recipe and scale.
  std::string mechanisms = {}, tasks = {};
};

struct RecipeResult {
  std::vector<Row> rows;
  Bounds bounds = Bounds::confidence;
  /// Folders of the runs from which the results were computed.
  std::vector<std::filesystem::path> runs = {};
  /// Sections of the report that follow the table, each with its heading and HTML.
  std::vector<std::pair<std::string, std::string>> sections = {};
  /// True if a signal or the time limit stopped the recipe. Running the recipe again continues it.
  bool stopped = false;
  /// True if the recipe was stopped and `rows` and `sections` cover the finished part.
  bool partial = false;
  bool has_table = false;  // true: `sections` contain a table, so none is made from `rows`
};

/// A run (one training) of a recipe that consists of independent runs.
struct GridRun {
  std::string name;  // name of the run's folder
  Config config;
  /// Folder of the run from whose checkpoint the model starts. By default, the model's initial
  /// values are drawn from the seed.
  std::optional<std::filesystem::path> start = {};
  /// Step of the checkpoint in the folder `start` with which the model starts. Default: the best
  /// checkpoint.
  std::optional<std::int64_t> start_step = {};

  std::int64_t last_step() const;
  std::int64_t evaluate_samples() const;
};

/// A part of a recipe's work that does not depend on the other parts. It consists of one or several
/// runs, and later runs may depend on the results of earlier ones.
struct GridPiece {
  std::string name;
  std::vector<GridRun> runs;   // the runs that this part of the work may train
  std::function<bool()> make;  // trains the missing ones of `runs`; returns false if stopped
};

/// A recipe: the program that reproduces one table or figure of a paper.
struct Recipe {
  std::string id;                       // "paper/table", such as "fal/table1"
  std::string summary;                  // one line for the list of recipes
  std::map<Scale, std::string> scales;  // describes the work and duration at each scale
  std::function<RecipeResult(const RecipeOptions&)> run;
  /// Lists the recipe's runs if they can be trained independently. Null for other recipes.
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs = {};
  /// Lists the independent parts of the recipe's work. Set instead of `runs` if some runs depend on
  /// others.
  std::function<std::vector<GridPiece>(const RecipeOptions&)> pieces = {};
  /// Names of the members of RecipeOptions that the recipe uses. Possible names are model, text,
  /// heads, optimizer, mechanisms and tasks.
  std::vector<std::string> takes = {};
};

/// A static object of this type adds its recipe to recipes() before main() starts.
struct RegisterRecipe {
  explicit RegisterRecipe(Recipe recipe);
};
const std::map<std::string, Recipe, std::less<>>& recipes();

/// The table of a report with the paper's rows and columns. A cell has our result with its
/// interval, the paper's result if it is printed, and the accuracy of guessing if the task has few
/// answers.
std::string comparison_table(std::string_view recipe, const std::vector<Row>& rows);

}  // namespace longhand::app
