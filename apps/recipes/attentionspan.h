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

/// Functions shared by the recipes of the paper AttentionSpan (a recipe is the program of one table
/// or figure). They define the paper's six tasks and the models that have learned them. The models
/// are small models trained from scratch or, with --model, the given model after fine-tuning.
namespace longhand::app {

/// A task of the paper, with the paper's accuracies in percent for models trained from scratch
/// (Table 6): `scratch_id` in distribution, `scratch_ood` out of distribution.
struct AlgorithmicTask {
  std::string_view name;   // longhand's name, such as "reversal"
  std::string_view title;  // name in the paper, such as "String Reversal"
  double scratch_id = 0, scratch_ood = 0;
  /// `option` is an option of the task, such as "pairs". `learned` is the range of this option in
  /// the training samples of small models, such as "2-5". `scored` is the paper's value, with which
  /// all models are scored in distribution.
  std::string_view option = {}, learned = {}, scored = {};
};
std::span<const AlgorithmicTask> algorithmic_tasks();
const AlgorithmicTask& algorithmic_task(std::string_view name);
/// The tasks selected by --tasks; by default all of the recipe's tasks.
std::vector<AlgorithmicTask> chosen_tasks(const RecipeOptions& options,
                                          std::span<const AlgorithmicTask> all);

using Settings = std::map<std::string, std::string>;

/// The AdamW settings selected by --optimizer: those of the program that the paper's authors
/// published (`published`, the default), or those in the paper's text (`text`).
Settings optimizer_settings(const RecipeOptions& options);
/// A sentence for the results page that describes the optimizer settings.
std::string how_optimized(const RecipeOptions& options);

/// The run that trains a small model on a task from scratch, with seed options.seed + number. The
/// settings in `more` override those of options.scale.
GridRun scratch_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// The run that fine-tunes the model of --model on a task, as in the paper's Table 2.
GridRun tuned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                  const Settings& more = {});
/// tuned_run() if --model is given, otherwise scratch_run().
GridRun learned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// Sentences for the results page that describe the models of learned_run().
std::string learned_model(const RecipeOptions& options);
/// Like learned_run(), but a model trained from scratch has only softmax heads, as in the paper.
GridRun softmax_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more = {});
/// Number of heads in a list: four in "softmax:2,delta:2".
std::int64_t head_count(std::string_view heads);
/// Names of the AttentionSpan recipes, which reuse each other's finished runs. The list is passed
/// to train_runs() and run_path().
std::span<const std::string_view> beside_attentionspan();

/// The run that repairs the model of another run as in the paper's section 6.4: it trains only the
/// last column of every head's W_Q and W_K, on out-of-distribution samples.
GridRun columns_repair(const GridRun& model, const RecipeOptions& options);

/// The runs of one task for all seeds. Some of these runs train a model. Others start from a
/// checkpoint of such a model.
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
/// The pieces of work, which can be done independently: one for each task and seed.
std::vector<GridPiece> pieces_of(std::span<const Lineage> lineages, const RecipeOptions& options);
/// Trains the runs that are not finished and lists all runs in result.runs. Returns false if the
/// training was stopped.
bool train_all(std::span<const Lineage> lineages, const RecipeOptions& options,
               RecipeResult& result);

/// The task on which the model of a run is scored: the run's task, with the paper's value
/// AlgorithmicTask::scored. `distribution` is "train" for samples in distribution and "ood" for
/// samples out of distribution.
std::unique_ptr<tasks::Task> scored_task(const Config& config, std::string_view distribution);

/// Loads the model of a finished run as it was after the last step. Repairs start from this model.
/// The best checkpoint is not used, because it was chosen by evaluations that include longer
/// samples. The backend is selected by --backend, --threads and --math.
LoadedRun load_learned(const GridRun& run, const RecipeOptions& options);
/// Evaluation options for `count` samples that no evaluation during training used.
EvaluationOptions fresh_samples(std::int64_t count, const RecipeOptions& options);
/// Number of samples on which attention is measured.
std::int64_t measured_samples(const RecipeOptions& options);

/// A model's accuracies on samples of one distribution.
struct TaskScore {
  double exact = 0;    // share of answers with all tokens right, under teacher forcing
  double partial = 0;  // share of right tokens, under teacher forcing
  std::optional<double> decoded = {};  // share of answers with all tokens right, in free decoding
  std::int64_t samples = 0, tokens = 0;
};
/// Scores the model of a run, as it was after the last step, on `samples` new samples. If `decoded`
/// is true, free decoding is scored too.
TaskScore score_task(const GridRun& run, std::string_view distribution,
                     const RecipeOptions& options, std::int64_t samples, bool decoded);
/// The scores of the runs of one task, one value per seed.
struct TaskScores {
  std::vector<double> exact, partial, decoded;
  std::int64_t samples = 0, tokens = 0;

  void add(const TaskScore& score);
};

/// Like add_row(), but the row contains percentages: the mean of `shares` and its interval are
/// multiplied by 100. `paper` must already be in percent.
void add_percent(RecipeResult& result, const std::string& row, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);
void add_percent(RecipeResult& result, const AlgorithmicTask& task, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of);

/// A result of the paper's Table 2 in percent: the accuracy in distribution (`id`) and out of
/// distribution (`ood`), and the share of right tokens out of distribution (`partial`).
struct TunedFigure {
  std::string_view model, task;  // names in the paper
  double id = 0, ood = 0, partial = 0;
};
std::span<const TunedFigure> tuned_figures();
std::string tuned_table();  // the paper's Table 2 as HTML

}  // namespace longhand::app
