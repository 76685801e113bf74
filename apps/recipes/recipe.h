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

/// `extended`: what the laptop scale is too small to show, in hours or days on a processor. Few
/// recipes have it; others refuse it.
enum class Scale { smoke, laptop, paper, extended };
std::string_view name_of(Scale scale);
std::optional<Scale> scale_from_name(std::string_view name);

/// A figure of ours and the paper's. Row and column have the paper's names.
struct Row {
  std::string row, column;
  double value = 0;
  std::optional<double> low = {}, high = {};  // meaning as in the result's Bounds
  std::optional<double> paper = {};
  bool in_table = true;  // false: only in the JSON
  bool whole = false;    // a count, such as a rank
};

/// The meaning of a row's low and high.
enum class Bounds { confidence, seeds };  // 95% confidence; worst and best of several seeds
std::string_view name_of(Bounds bounds);  // "95%"; "worst to best"

using Settings = std::map<std::string, std::string>;  // settings of a run's configuration

struct RecipeOptions {
  Scale scale = Scale::smoke;
  std::uint64_t seed = 1;
  std::int64_t seeds = 0;     // runs per model; 0: the scale's default
  std::filesystem::path out;  // folder of the runs and the report
  Settings settings = {};     // overrides for every run's configuration
  TrainingManner manner = {};
  /// For recipes that use them: a run to start from, a text to train on, heads to put into the
  /// model, which of a paper's two optimizers.
  std::string model = {}, text = {}, heads = {}, optimizer = {};
  std::string mechanisms = {}, tasks = {};  // some of the recipe's: "a,b"
};

struct RecipeResult {
  std::vector<Row> rows;
  Bounds bounds = Bounds::confidence;
  std::vector<std::filesystem::path> runs = {};  // the runs behind the figures
  /// Parts of the report after the table: heading and HTML.
  std::vector<std::pair<std::string, std::string>> sections = {};
  bool stopped = false;    // by a signal or time limit; running the recipe again continues
  bool partial = false;    // stopped, but rows and sections cover what is finished
  bool has_table = false;  // the sections contain a table, so none is made of the rows
};

/// One of the independent runs of a recipe.
struct GridRun {
  std::string name;  // name of its folder
  Config config;
  /// Another run, whose checkpoint its model begins with; none: as the seed has it.
  std::optional<std::filesystem::path> start = {};
  std::optional<std::int64_t> start_step = {};  // of that checkpoint; none: the best one

  std::int64_t last_step() const;
  std::int64_t evaluate_samples() const;
};

/// An independent piece of a recipe's work: some runs, of which the first may determine the others.
struct GridPiece {
  std::string name;
  std::vector<GridRun> runs;   // runs that it trains at most
  std::function<bool()> make;  // trains what is missing; returns false if stopped
};

/// The program of one table or figure of a paper.
struct Recipe {
  std::string id;                       // paper/table
  std::string summary;                  // one line
  std::map<Scale, std::string> scales;  // what each scale does and how long it takes
  std::function<RecipeResult(const RecipeOptions&)> run;
  /// The runs, for a recipe whose runs can be trained separately; `run` then assumes that they are
  /// finished.
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs = {};
  /// Used instead of `runs` if some runs depend on others.
  std::function<std::vector<GridPiece>(const RecipeOptions&)> pieces = {};
  /// The options it uses among model, text, heads, optimizer, mechanisms and tasks.
  std::vector<std::string> takes = {};
};

/// Registers a recipe when it is constructed, before main.
struct RegisterRecipe {
  explicit RegisterRecipe(Recipe recipe);
};
const std::map<std::string, Recipe, std::less<>>& recipes();

/// The table of a report: paper's rows and columns, ours with its interval, the paper's below it
/// where it prints one, and what a guess has where answers are few.
std::string comparison_table(std::string_view recipe, const std::vector<Row>& rows);

}  // namespace longhand::app
