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

/// The matrix of mechanisms and tasks: one decoder with different mechanisms in its heads, each
/// trained on every task and tested on longer samples.
namespace longhand::app::matrix {

/// A mechanism for the decoder's heads. A new one is a line in the table of matrix_tables.cpp.
struct Mechanism {
  std::string_view name, title;
  std::string_view heads;  // of a layer, four of equal width together
  std::string_view positions = "none";
  Scale from = Scale::laptop;      // smallest scale that includes it without --mechanisms
  std::string_view settings = {};  // further settings of the model: "forget_bias=6"
  // width of each head in sixteenths of the model's; 0: heads share the width
  std::int64_t sixteenths = 0;
};
std::span<const Mechanism> mechanisms();

/// A task, and what its samples' length is; multiples of it are tested.
struct MatrixTask {
  std::string_view name, title;
  std::string_view kind;                // name in tasks/
  std::string_view length;              // what is counted: "instructions"
  std::array<std::int64_t, 3> longest;  // in training, by scale
  /// The task's options for samples up to that length, as in training, or of exactly that length.
  Settings (*options)(Scale scale, std::int64_t longest, bool exactly);
  std::string_view best;  // the best published figures beyond the trained lengths
  Scale from = Scale::laptop;
  std::span<const std::string_view> others = {};  // further distributions of the task to test

  std::int64_t trained(Scale scale) const { return longest[static_cast<std::size_t>(scale)]; }
};
std::span<const MatrixTask> matrix_tasks();

/// A sentence with the published figures of a mechanism on a task; empty if none was found.
std::string_view published(const MatrixTask& task, const Mechanism& mechanism);

/// The mechanisms and tasks selected by --mechanisms and --tasks, or those of the scale. Throws
/// UsageError for an unknown or repeated name.
struct Choice {
  std::vector<const Mechanism*> mechanisms;
  std::vector<const MatrixTask*> tasks;
};
Choice choose(const RecipeOptions& options);

struct Cell {
  const Mechanism* mechanism = nullptr;
  const MatrixTask* task = nullptr;

  std::string name() const { return text(task->name, '-', mechanism->name); }
  /// False if the mechanism needs couplings that the task does not define.
  bool exists() const;
};
/// The existing cells, task by task, so that each task is finished before the next begins.
std::vector<Cell> cells(const Choice& choice);

/// The three rates, as text.
std::span<const std::string_view> rates(Scale scale);
/// The run of a cell at a rate, with seed options.seed + number. The runs of the first seed select
/// the rate.
GridRun cell_run(const Cell& cell, std::string_view rate, std::int64_t number,
                 const RecipeOptions& options);
std::int64_t seeds(const RecipeOptions& options);
/// All runs of a cell if none stops early: one at each rate, then the other seeds. The selected
/// rate is known only after the first ones; until then the others have the first rate.
std::vector<GridRun> cell_runs(const Cell& cell, const RecipeOptions& options);

/// A test: samples of `factor` times the trained length, where 1 means the training distribution;
/// or another distribution, with factor 0.
struct Test {
  std::string name;
  std::int64_t factor = 0;
};
std::vector<Test> tests_of(const MatrixTask& task);
std::unique_ptr<tasks::Task> test_task(const Config& config, const MatrixTask& task,
                                       const Test& test, Scale scale);

/// The best guess without reading the sample: the entropy of the targets' frequencies in nats, and
/// the most frequent target.
struct Guess {
  double loss = 0;
  std::int32_t answer = 0;
};
Guess guess_of(const tasks::Task& task);
/// The score of this guess as every answer, by the task's main metric.
double score_of(const Guess& guess, const tasks::Task& task);

/// True if a run should stop early: in the last tenth of the first half of its steps, the mean
/// training loss is at least 95% of the guess's.
bool is_hopeless(std::span<const double> losses, double guess);

/// A finished run.
struct CellRun {
  struct Score {
    double value = 0;
    std::int64_t of = 0;
  };
  std::string run, rate;
  std::uint64_t seed = 0;
  std::int64_t step = 0;            // the last step
  std::string end;                  // whole, hopeless or diverged
  std::optional<double> loss = {};  // on samples as in training; empty if diverged
  double seconds = 0;               // seconds per token of a step, the 10% quantile over steps
  std::vector<Score> scores = {};   // of the tests
};
/// A finished cell, stored as OUT/CELL.json.
struct CellResult {
  std::string commit, rate;
  std::int64_t parameters = 0;
  double operations = 0;  // operations per token of a step
  double guessed_loss = 0;
  std::vector<double> guessed = {};  // per test
  std::vector<CellRun> trials = {};  // of the first seed at every rate, not scored
  std::vector<CellRun> runs = {};    // at the selected rate

  bool hopeless() const;   // true if every run stopped early
  double seconds() const;  // of the fastest run
  std::vector<double> scores(std::size_t test) const;
};
Json json_of(const CellResult& result, const MatrixTask& task);

/// Trains the missing runs of a cell, scores them and writes OUT/CELL.json. Returns false if
/// stopped.
bool make_cell(const Cell& cell, const RecipeOptions& options);
/// Empty if the cell is not finished, or has another configuration.
std::optional<CellResult> read_cell(const Cell& cell, const RecipeOptions& options);

double median(std::vector<double> values);

}  // namespace longhand::app::matrix
