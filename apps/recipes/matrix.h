#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/grid.h"
#include "core/json.h"

/// The matrix of mechanisms and tasks: one decoder, and in its heads one mechanism after another,
/// each trained on every task and tested on longer samples.
namespace longhand::app::matrix {

/// What stands in the decoder's heads. A line of the table in matrix_tables.cpp is all it takes.
struct Mechanism {
  std::string_view name, title;
  std::string_view heads;  // of a layer, four of the same width together
  std::string_view positions = "none";
  Scale from = Scale::laptop;      // it is taken without --mechanisms at this scale and larger ones
  std::string_view settings = {};  // more of the model's: "forget_bias=6"
  std::int64_t sixteenths = 0;     // of the model's width, that each of the heads has; 0: all share
};
std::span<const Mechanism> mechanisms();

/// A task, with what its samples' length is: twice and four times that is tested.
struct MatrixTask {
  std::string_view name, title;
  std::string_view kind;                // of tasks/
  std::string_view length;              // what is counted: "instructions"
  std::array<std::int64_t, 3> longest;  // in training, by scale
  /// The task's options for samples up to that length, as in training, or of exactly that length.
  Settings (*options)(Scale scale, std::int64_t longest, bool exactly);
  std::string_view best;  // the best published figures beyond the training's lengths
  Scale from = Scale::laptop;
  std::span<const std::string_view> others = {};  // distributions of the task that are tested too

  std::int64_t trained(Scale scale) const { return longest[static_cast<std::size_t>(scale)]; }
};
std::span<const MatrixTask> matrix_tasks();

/// The published figures of a mechanism on a task, a sentence; empty: none was found.
std::string_view published(const MatrixTask& task, const Mechanism& mechanism);

/// The mechanisms and tasks that --mechanisms and --tasks name, or those of the scale. A name that
/// there is not, or is twice, is wrong usage.
struct Choice {
  std::vector<const Mechanism*> mechanisms;
  std::vector<const MatrixTask*> tasks;
};
Choice choose(const RecipeOptions& options);

struct Cell {
  const Mechanism* mechanism = nullptr;
  const MatrixTask* task = nullptr;

  std::string name() const { return text(task->name, '-', mechanism->name); }
  /// Whether there is such a thing: not all tasks couple their tokens.
  bool exists() const;
};
/// Those that exist, task by task, so that each is whole before the next begins.
std::vector<Cell> cells(const Choice& choice);

/// The three rates, as text.
std::span<const std::string_view> rates(Scale scale);
/// The run of a cell at a rate and options.seed + number. Those of the first seed choose the rate.
GridRun cell_run(const Cell& cell, std::string_view rate, std::int64_t number,
                 const RecipeOptions& options);
std::int64_t seeds(const RecipeOptions& options);
/// All that a cell trains where no run is hopeless: one at each rate, then the other seeds. Their
/// rate is known when the first are done; here they have the first one.
std::vector<GridRun> cell_runs(const Cell& cell, const RecipeOptions& options);

/// A test: `factor` times the length of training, 1 being the training's own samples; or another
/// distribution, of factor 0.
struct Test {
  std::string name;
  std::int64_t factor = 0;
};
std::vector<Test> tests_of(const MatrixTask& task);
std::unique_ptr<tasks::Task> test_task(const Config& config, const MatrixTask& task,
                                       const Test& test, Scale scale);

/// What is known without the sample: the entropy of the targets' own frequencies, in nats, and the
/// most frequent one.
struct Guess {
  double loss = 0;
  std::int32_t answer = 0;
};
Guess guess_of(const tasks::Task& task);
/// That as every answer, by the task's main metric.
double score_of(const Guess& guess, const tasks::Task& task);

/// The rule by which a run is given up: in the last tenth of the first half of its steps the mean
/// of the training's losses is at least 95% of the guess's.
bool is_hopeless(std::span<const double> losses, double guess);

/// A run as it came out.
struct CellRun {
  struct Score {
    double value = 0;
    std::int64_t of = 0;
  };
  std::string run, rate;
  std::uint64_t seed = 0;
  std::int64_t step = 0;            // the last one
  std::string end;                  // whole, hopeless or diverged
  std::optional<double> loss = {};  // on samples as in training; none: diverged
  double seconds = 0;               // of a step, by its tokens: a tenth of the steps took less
  std::vector<Score> scores = {};   // of the tests
};
/// A cell as it came out: what OUT/CELL.json holds.
struct CellResult {
  std::string commit, rate;
  std::int64_t parameters = 0;
  double operations = 0;  // of a step, by its tokens
  double guessed_loss = 0;
  std::vector<double> guessed = {};  // by the tests
  std::vector<CellRun> trials = {};  // of the first seed at every rate, not scored
  std::vector<CellRun> runs = {};    // at the rate that was chosen

  bool hopeless() const;   // every run was given up
  double seconds() const;  // of the fastest run
  std::vector<double> scores(std::size_t test) const;
};
Json json_of(const CellResult& result, const MatrixTask& task);

/// Trains what is missing of a cell, scores its runs and writes OUT/CELL.json. False: stopped.
bool make_cell(const Cell& cell, const RecipeOptions& options);
/// None where it has not been made, or with other configurations.
std::optional<CellResult> read_cell(const Cell& cell, const RecipeOptions& options);

double median(std::vector<double> values);

}  // namespace longhand::app::matrix
