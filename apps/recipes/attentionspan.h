#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/attention_measures.h"

/// Shared by the recipes of AttentionSpan: the six tasks, and models that have learned them. The
/// models are small ones trained from scratch or, with --model, that model fine-tuned.
namespace longhand::app {

/// A task under the paper's name, with the paper's figures for models trained from scratch (Table
/// 6, percent).
struct AlgorithmicTask {
  std::string_view name;   // name in tasks/
  std::string_view title;  // name in the paper
  double scratch_id = 0, scratch_ood = 0;
  /// An option of the task, such as "pairs", for which small models also learn smaller values; the
  /// learned range; and the paper's value, which is scored.
  std::string_view option = {}, learned = {}, scored = {};
};
std::span<const AlgorithmicTask> algorithmic_tasks();
const AlgorithmicTask& algorithmic_task(std::string_view name);
/// The recipe's tasks selected by --tasks; all by default.
std::vector<AlgorithmicTask> chosen_tasks(const RecipeOptions& options,
                                          std::span<const AlgorithmicTask> all);

using Settings = std::map<std::string, std::string>;

/// AdamW's settings selected by --optimizer: `published`, the default, are those of the published
/// program, `text` those stated in the paper.
Settings optimizer_settings(const RecipeOptions& options);
/// A description of these settings.
std::string how_optimized(const RecipeOptions& options);

/// The run of the small model that learns a task, with seed options.seed + number; `more` overrides
/// the scale's settings.
GridRun scratch_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// The run that fine-tunes --model on a task, as in Table 2.
GridRun tuned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                  const Settings& more = {});
/// The one of these runs that the recipe's options select, and a sentence that describes its model.
GridRun learned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
std::string learned_model(const RecipeOptions& options);
/// The same with softmax heads only, as in the paper's models.
GridRun softmax_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// Number of heads in a model's `heads`: four in "softmax:2,delta:2".
std::int64_t head_count(std::string_view heads);
/// Recipes whose finished runs the others reuse, for train_runs() and run_path().
std::span<const std::string_view> beside_attentionspan();

/// The repair of section 6.4: the last column of every head's W_Q and W_K is trained out of
/// distribution, everything else is frozen.
GridRun columns_repair(const GridRun& model, const RecipeOptions& options);

/// For one task, a model and the runs derived from it, once per seed.
struct Lineage {
  AlgorithmicTask task;
  std::vector<std::vector<GridRun>> seeds;  // in the order of training

  /// Run number i of every seed.
  std::vector<GridRun> of_seeds(std::size_t i) const;
};
using MakeLineage =
    std::function<std::vector<GridRun>(const AlgorithmicTask& task, std::int64_t number)>;
std::vector<Lineage> lineages(std::span<const AlgorithmicTask> tasks, const RecipeOptions& options,
                              const MakeLineage& make);
/// One piece per task and seed.
std::vector<GridPiece> pieces_of(std::span<const Lineage> lineages, const RecipeOptions& options);
/// Trains missing runs and lists all runs in the result. Returns false if stopped.
bool train_all(std::span<const Lineage> lineages, const RecipeOptions& options,
               RecipeResult& result);

/// The task of such a run, with the paper's samples in or out of distribution.
std::unique_ptr<tasks::Task> scored_task(const Config& config, std::string_view distribution);

/// A finished run after its last step, with which repairs begin, with --backend, --threads and
/// --math. Not the best checkpoint: evaluations that choose it score longer samples too.
LoadedRun load_learned(const GridRun& run, const RecipeOptions& options);
/// Samples that no evaluation during training used.
EvaluationOptions fresh_samples(std::int64_t count, const RecipeOptions& options);
/// Number of samples on which attention is measured.
std::int64_t measured_samples(const RecipeOptions& options);

/// Shares of right answers over samples of a distribution.
struct TaskScore {
  double exact = 0;                    // all tokens of the answer right, under teacher forcing
  double partial = 0;                  // tokens right, under teacher forcing
  std::optional<double> decoded = {};  // all tokens right when the model reads its own answer
  std::int64_t samples = 0, tokens = 0;
};
/// A run after its last step on so many fresh samples.
TaskScore score_task(const GridRun& run, std::string_view distribution,
                     const RecipeOptions& options, std::int64_t samples, bool decoded);
/// The scores of one task's runs, one value per seed.
struct TaskScores {
  std::vector<double> exact, partial, decoded;
  std::int64_t samples = 0, tokens = 0;

  void add(const TaskScore& score);
};

/// Adds a row with shares in percent, see add_row().
void add_percent(RecipeResult& result, const std::string& row, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);
void add_percent(RecipeResult& result, const AlgorithmicTask& task, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);

/// A figure of the paper's Table 2, in percent.
struct TunedFigure {
  std::string_view model, task;  // the paper's names
  double id = 0, ood = 0, partial = 0;
};
std::span<const TunedFigure> tuned_figures();
std::string tuned_table();  // as HTML

}  // namespace longhand::app
