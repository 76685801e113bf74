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

/// One figure of ours and the paper's; row and column are named as the paper names them.
struct Row {
  std::string row, column;
  double value = 0;
  std::optional<double> low = {}, high = {};  // as the result's Bounds say
  std::optional<double> paper = {};
  bool in_table = true;  // false: in the JSON alone
  bool whole = false;    // a number of things, such as a rank
};

/// What a row's low and high are.
enum class Bounds { confidence, seeds };  // 95%; the worst and the best of several seeds
std::string_view name_of(Bounds bounds);  // "95%"; "worst to best"

using Settings = std::map<std::string, std::string>;  // of a run's configuration

struct RecipeOptions {
  Scale scale = Scale::smoke;
  std::uint64_t seed = 1;
  std::int64_t seeds = 0;     // runs of each model; 0: as the scale says
  std::filesystem::path out;  // runs and the report go here
  Settings settings = {};     // over every run's configuration
  TrainingManner manner = {};
  /// Of recipes that take them: a run to begin with, a text to learn, heads to put into the model,
  /// which of a paper's two optimizers.
  std::string model = {}, text = {}, heads = {}, optimizer = {};
  std::string mechanisms = {}, tasks = {};  // some of those that the recipe has: "a,b"
};

struct RecipeResult {
  std::vector<Row> rows;
  Bounds bounds = Bounds::confidence;
  std::vector<std::filesystem::path> runs = {};  // whose figures these are
  /// Parts of the report after the table: heading and HTML.
  std::vector<std::pair<std::string, std::string>> sections = {};
  bool stopped = false;    // by a signal or a limit of time; running the recipe again goes on
  bool partial = false;    // stopped, but there are rows and sections of what is done
  bool has_table = false;  // among the sections: none is made of the rows
};

/// One run of a recipe that is a grid of independent ones.
struct GridRun {
  std::string name;  // of its folder
  Config config;
  /// Another run, whose checkpoint its model begins with; none: as the seed has it.
  std::optional<std::filesystem::path> start = {};
  std::optional<std::int64_t> start_step = {};  // of that checkpoint; none: the best one

  std::int64_t last_step() const;
  std::int64_t evaluate_samples() const;
};

/// A piece of a recipe's work that needs none of the others: some runs, of which the first may say
/// what the rest are.
struct GridPiece {
  std::string name;
  std::vector<GridRun> runs;   // what it trains, at most
  std::function<bool()> make;  // what is missing of it; false: stopped
};

/// How one table or figure of a paper is made again.
struct Recipe {
  std::string id;                       // paper/table
  std::string summary;                  // one line
  std::map<Scale, std::string> scales;  // what each scale does and how long it takes
  std::function<RecipeResult(const RecipeOptions&)> run;
  /// What it trains, for a recipe whose runs may be trained apart; `run` then takes them as done.
  std::function<std::vector<GridRun>(const RecipeOptions&)> runs = {};
  /// In place of runs, where some of them follow from others.
  std::function<std::vector<GridPiece>(const RecipeOptions&)> pieces = {};
  /// Of model, text, heads, optimizer, mechanisms and tasks, those that it reads.
  std::vector<std::string> takes = {};
};

/// Adds a recipe when it is constructed, before main.
struct RegisterRecipe {
  explicit RegisterRecipe(Recipe recipe);
};
const std::map<std::string, Recipe, std::less<>>& recipes();

/// The table of a report: paper's rows and columns, ours with its interval, the paper's below it
/// where it prints one, and what a guess has where answers are few.
std::string comparison_table(std::string_view recipe, const std::vector<Row>& rows);

}  // namespace longhand::app
