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

/// Functions shared by the recipes of AttentionSpan: the six tasks, and models that have learned
/// them. The models are small models trained from scratch or, with --model, the given model after
/// fine-tuning.
namespace longhand::app {

/// A task under its name in the paper, with the paper's results for models trained from scratch
/// (Table 6, percent).
struct AlgorithmicTask {
  std::string_view name;   // name in tasks/
  std::string_view title;  // name in the paper
  double scratch_id = 0, scratch_ood = 0;
  /// An option of the task, such as "pairs", that has smaller values in the training of small
  /// models. `learned` is the range of these values. `scored` is the paper's value, with which all
  /// models are scored.
  std::string_view option = {}, learned = {}, scored = {};
};
std::span<const AlgorithmicTask> algorithmic_tasks();
const AlgorithmicTask& algorithmic_task(std::string_view name);
/// The tasks selected by --tasks; by default all of the recipe's tasks.
std::vector<AlgorithmicTask> chosen_tasks(const RecipeOptions& options,
                                          std::span<const AlgorithmicTask> all);

using Settings = std::map<std::string, std::string>;

/// The AdamW settings selected by --optimizer. `published`, the default, selects the settings of
/// the published program, and `text` selects those in the paper's text.
Settings optimizer_settings(const RecipeOptions& options);
/// A description of the optimizer settings for the page.
std::string how_optimized(const RecipeOptions& options);

/// The run in which the small model learns a task, with seed options.seed + number. `more`
/// overrides the settings of the scale.
GridRun scratch_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// The run that fine-tunes --model on a task, as in Table 2.
GridRun tuned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                  const Settings& more = {});
/// scratch_run() or tuned_run(), whichever the recipe's options select. learned_model() is a
/// sentence that describes the model.
GridRun learned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
std::string learned_model(const RecipeOptions& options);
/// learned_run() with softmax heads only, as in the paper's models.
GridRun softmax_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// Number of heads in a list: four in "softmax:2,delta:2".
std::int64_t head_count(std::string_view heads);
/// Names of the AttentionSpan recipes, which reuse each other's finished runs. They are arguments
/// of train_runs() and run_path().
std::span<const std::string_view> beside_attentionspan();

/// The run that applies the repair of section 6.4 to a model. Only the last column of every head's
/// W_Q and W_K is trained, on out-of-distribution samples.
GridRun columns_repair(const GridRun& model, const RecipeOptions& options);

/// The runs of one model on one task, and the runs that start from them, for every seed.
struct Lineage {
  AlgorithmicTask task;
  std::vector<std::vector<GridRun>> seeds;  // For each seed, the runs in the order of training.

  /// Run number i of every seed.
  std::vector<GridRun> of_seeds(std::size_t i) const;
};
using MakeLineage =
    std::function<std::vector<GridRun>(const AlgorithmicTask& task, std::int64_t number)>;
std::vector<Lineage> lineages(std::span<const AlgorithmicTask> tasks, const RecipeOptions& options,
                              const MakeLineage& make);
/// Pieces of work: one per task and seed.
std::vector<GridPiece> pieces_of(std::span<const Lineage> lineages, const RecipeOptions& options);
/// Trains the missing runs and lists all runs in the result. Returns false if the training was
/// stopped.
bool train_all(std::span<const Lineage> lineages, const RecipeOptions& options,
               RecipeResult& result);

/// The task of a run, with the paper's samples in or out of distribution.
std::unique_ptr<tasks::Task> scored_task(const Config& config, std::string_view distribution);

/// Loads the model of a finished run as it was after the last step. Repairs start from this model.
/// The best checkpoint is not used, because it was chosen by evaluations that include longer
/// samples. The backend is selected by --backend, --threads and --math.
LoadedRun load_learned(const GridRun& run, const RecipeOptions& options);
/// Options for samples that no evaluation during training used.
EvaluationOptions fresh_samples(std::int64_t count, const RecipeOptions& options);
/// Number of samples on which attention is measured.
std::int64_t measured_samples(const RecipeOptions& options);

/// Accuracies over samples of one distribution.
struct TaskScore {
  double exact = 0;    // share of answers with all tokens right, under teacher forcing
  double partial = 0;  // share of right tokens, under teacher forcing
  std::optional<double> decoded = {};  // share of answers with all tokens right, in free decoding
  std::int64_t samples = 0, tokens = 0;
};
/// Scores a run after its last step on `samples` fresh samples.
TaskScore score_task(const GridRun& run, std::string_view distribution,
                     const RecipeOptions& options, std::int64_t samples, bool decoded);
/// The scores of one task's runs, one value per seed.
struct TaskScores {
  std::vector<double> exact, partial, decoded;
  std::int64_t samples = 0, tokens = 0;

  void add(const TaskScore& score);
};

/// Adds a row with shares in percent. See add_row().
void add_percent(RecipeResult& result, const std::string& row, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);
void add_percent(RecipeResult& result, const AlgorithmicTask& task, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);

/// A result from the paper's Table 2, in percent.
struct TunedFigure {
  std::string_view model, task;  // as named in the paper
  double id = 0, ood = 0, partial = 0;
};
std::span<const TunedFigure> tuned_figures();
std::string tuned_table();  // the table as HTML

}  // namespace longhand::app
