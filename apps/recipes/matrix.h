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

/// A mechanism for the decoder's heads. To add one, add a line to the table in matrix_tables.cpp.
struct Mechanism {
  std::string_view name, title;
  std::string_view heads;  // heads of each layer, such as "softmax:3,fal:1"
  std::string_view positions = "none";
  Scale from = Scale::laptop;      // smallest scale whose default includes the mechanism
  std::string_view settings = {};  // further settings of the model, such as "forget_bias=6"
  // Width of each head in sixteenths of the model's width; 0: the heads share the width.
  std::int64_t sixteenths = 0;
};
std::span<const Mechanism> mechanisms();

/// A task and the unit in which the length of its samples is measured. Tests use multiples of the
/// trained length.
struct MatrixTask {
  std::string_view name, title;
  std::string_view kind;                // longhand's name of the task, such as "words"
  std::string_view length;              // unit of length, such as "instructions"
  std::array<std::int64_t, 3> longest;  // maximum trained length at each scale
  /// Returns the task's options. If `exactly` is true, all samples have the length `longest`.
  /// Otherwise, samples have lengths up to `longest`, as in training.
  Settings (*options)(Scale scale, std::int64_t longest, bool exactly);
  std::string_view best;  // the best published results beyond the trained length
  Scale from = Scale::laptop;
  /// Further distributions of the task on which models are tested.
  std::span<const std::string_view> others = {};
  /// For a task made from the user's own files: their folder or file. Every file except the
  /// training file is a test. Empty for a built-in task.
  std::string_view files = {};

  std::int64_t trained(Scale scale) const { return longest[static_cast<std::size_t>(scale)]; }
};
std::span<const MatrixTask> matrix_tasks();

/// A sentence with the published results of a mechanism on a task. Empty if we found none.
std::string_view published(const MatrixTask& task, const Mechanism& mechanism);

/// The mechanisms and tasks selected by --mechanisms and --tasks. The default is all that the scale
/// includes. A task may also be a folder or file of the user.
struct Choice {
  std::vector<const Mechanism*> mechanisms;
  std::vector<const MatrixTask*> tasks;
};
Choice choose(const RecipeOptions& options);

struct Cell {
  const Mechanism* mechanism = nullptr;
  const MatrixTask* task = nullptr;

  std::string name() const { return text(task->name, '-', mechanism->name); }
  /// False if the mechanism requires coupled positions, which related tokens share, and the task
  /// does not define them.
  bool exists() const;
};
/// All existing cells (mechanisms on tasks) of a choice, task by task. Each task is finished before
/// the next begins.
std::vector<Cell> cells(const Choice& choice);

/// The three learning rates that are tried at a scale, as text.
std::span<const std::string_view> rates(Scale scale);
/// The run of a cell at a learning rate, with seed options.seed + number. The runs of the first
/// seed determine the cell's rate.
GridRun cell_run(const Cell& cell, std::string_view rate, std::int64_t number,
                 const RecipeOptions& options);
std::int64_t seeds(const RecipeOptions& options);
/// All runs of a cell, if none stops early: the first seed at each learning rate, then the other
/// seeds at the selected rate. Until the rate is selected, the other seeds are listed with the
/// first rate.
std::vector<GridRun> cell_runs(const Cell& cell, const RecipeOptions& options);

/// A test of a trained model on samples of `factor` times the trained length. Factor 1 is the
/// training distribution. Factor 0 stands for a further distribution of the task, called `name`.
struct Test {
  std::string name;
  std::int64_t factor = 0;
};
std::vector<Test> tests_of(const MatrixTask& task);
std::unique_ptr<tasks::Task> test_task(const Config& config, const MatrixTask& task,
                                       const Test& test, Scale scale);

/// The best prediction without reading the sample. `answer` is the most frequent target. `loss`, in
/// nats, is the entropy of the targets' frequencies.
struct Guess {
  double loss = 0;
  std::int32_t answer = 0;
};
Guess guess_of(const tasks::Task& task);
/// Returns the value of the task's main metric if every answer is guess.answer.
double score_of(const Guess& guess, const tasks::Task& task);

/// True if a run should stop after half of its steps, because it has learned little: over the last
/// tenth of this half, the mean training loss is at least 95% of the loss of guessing.
bool is_hopeless(std::span<const double> losses, double guess);

/// The results of a finished run.
struct CellRun {
  struct Score {
    double value = 0;
    std::int64_t of = 0;
  };
  std::string run, rate;
  std::uint64_t seed = 0;
  std::int64_t step = 0;  // last trained step
  // Why training ended: "whole" (after all steps), "hopeless" (stopped early, see is_hopeless()) or
  // "diverged".
  std::string end;
  // Mean loss on samples of the training distribution. Empty if the training diverged.
  std::optional<double> loss = {};
  double seconds = 0;              // seconds per token: the 10% quantile over steps
  std::vector<Score> scores = {};  // one score per test
};
/// The results of a finished cell of the matrix. A cell is one mechanism trained on one task. The
/// results are stored in options.out, in a JSON file named after the cell.
struct CellResult {
  std::string commit, rate;
  std::int64_t parameters = 0;
  double operations = 0;  // operations per token of a training step
  double guessed_loss = 0;
  std::vector<double> guessed = {};  // scores of guessing, one per test
  /// Runs of the first seed at every rate; not scored on the tests.
  std::vector<CellRun> trials = {};
  std::vector<CellRun> runs = {};  // runs of all seeds at the selected rate

  bool hopeless() const;   // true if every run stopped early
  double seconds() const;  // seconds per token of the fastest run
  std::vector<double> scores(std::size_t test) const;
};
Json json_of(const CellResult& result, const MatrixTask& task);

/// Trains the missing runs of a cell, scores them and writes the JSON file of the cell. Returns
/// false if the training was stopped.
bool make_cell(const Cell& cell, const RecipeOptions& options);
/// Reads the JSON file of a cell. No value if the cell is not finished or has another
/// configuration.
std::optional<CellResult> read_cell(const Cell& cell, const RecipeOptions& options);

double median(std::vector<double> values);

}  // namespace longhand::app::matrix
