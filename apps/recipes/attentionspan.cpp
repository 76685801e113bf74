#include "apps/recipes/attentionspan.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "apps/recipes/chosen.h"
#include "apps/run/evaluation.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

constexpr AlgorithmicTask tasks_of_paper[] = {
    {"reversal", "String Reversal", 5.21, 0.0578},
    {"addition", "Long Addition", 9.37, 0.1713},
    {"multiplication", "Long Multiplication", 18, 0.1302},
    {"ffml", "FFML", 68.75, 0.0129, "commands", "1-10", "10"},
    {"value-assignment", "Value Assignment", 4.17, 0.3060, "pairs", "2-5", "5"},
    {"successor", "Successor", 100, 0.4069},
};

constexpr std::string_view llama = "Llama-3.2-1B-Instruct", qwen = "Qwen2.5-1.5B-Instruct",
                           gemma = "gemma-3-1b-it";
constexpr TunedFigure tuned[] = {
    {llama, "String Reversal", 99.85, 64.00, 97.70},
    {llama, "Long Addition", 100.00, 15.00, 79.53},
    {llama, "Long Multiplication", 100.00, 83.00, 99.84},
    {llama, "FFML", 100.00, 99.20, 99.79},
    {llama, "Value Assignment", 96.87, 1.04, 71.00},
    {qwen, "String Reversal", 93.75, 17.70, 72.74},
    {qwen, "Long Addition", 96.87, 22.91, 88.83},
    {qwen, "Long Multiplication", 97.00, 0.00, 80.88},
    {qwen, "FFML", 100.00, 88.50, 96.71},
    {qwen, "Value Assignment", 91.66, 3.125, 88.31},
    {gemma, "String Reversal", 100.00, 14.00, 39.52},
    {gemma, "Long Addition", 100.00, 2.62, 67.85},
    {gemma, "Long Multiplication", 97.91, 0.00, 76.65},
    {gemma, "FFML", 100.00, 90.12, 96.71},
    {gemma, "Value Assignment", 98.95, 0.00, 19.35},
};

/// The small model of a task and its training. With initial weights of standard deviation 0.1, a
/// model learns addition much sooner than with 0.02, but it learns reversal later. If all samples
/// are as long as in the paper, the losses of FFML (reading a register after writes and flips) and
/// of value assignment stay on a plateau for thousands of steps. These models therefore train on
/// shorter samples too (AlgorithmicTask::learned). In value assignment, softmax heads leave the
/// plateau late, so its model has ChaCAL heads. The flips in FFML require computing a parity.
/// Softmax heads learn parity only partly, and Gated DeltaNet heads learn it completely.
struct Size {
  std::string_view task;
  std::int64_t layers, width, steps, batch;
  std::string_view rate, heads = "softmax:4";
  std::string_view deviation = "0.1";  // standard deviation of the initial weights
};
constexpr std::string_view plain = "softmax:4", chains = "chacal:4", states = "softmax:2,delta:2";

constexpr Size smoke_sizes[] = {
    {"reversal", 2, 64, 1800, 32, "3e-3", plain, "0.02"},
    {"addition", 3, 64, 2000, 64, "2e-3"},
    {"multiplication", 3, 64, 500, 32, "2e-3"},
    {"ffml", 3, 64, 1500, 64, "2e-3"},
    {"value-assignment", 2, 64, 1500, 64, "1e-3", chains},
    {"successor", 2, 64, 200, 32, "3e-3"},
};
constexpr Size laptop_sizes[] = {
    {"reversal", 2, 64, 4000, 32, "3e-3", plain, "0.02"},
    {"addition", 3, 64, 6000, 64, "2e-3"},
    {"multiplication", 3, 96, 9000, 64, "2e-3"},
    {"ffml", 3, 64, 10000, 64, "2e-3", states},
    {"value-assignment", 2, 64, 15000, 64, "1e-3", chains},
    {"successor", 2, 64, 1000, 32, "3e-3"},
};
constexpr Size paper_sizes[] = {
    {"reversal", 8, 512, 20000, 128, "3e-4", "softmax:8", "0.04"},
    {"addition", 8, 512, 20000, 128, "3e-4", "softmax:8", "0.04"},
    {"multiplication", 8, 512, 20000, 128, "3e-4", "softmax:8", "0.04"},
    {"ffml", 8, 512, 20000, 128, "3e-4", "softmax:4,delta:4", "0.04"},
    {"value-assignment", 8, 512, 20000, 128, "3e-4", "chacal:8", "0.04"},
    {"successor", 8, 512, 5000, 128, "3e-4", "softmax:8", "0.04"},
};

const Size& size_of(std::string_view task, Scale scale) {
  constexpr std::array<std::span<const Size>, 3> sizes{smoke_sizes, laptop_sizes, paper_sizes};
  const auto all = sizes[static_cast<std::size_t>(scale)];
  const auto found = std::ranges::find(all, task, &Size::task);
  LONGHAND_CHECK(found != all.end(), "attentionspan: there is no model size for task ", task);
  return *found;
}

/// Settings for fine-tuning a pretrained model on a task, with their values at the scales smoke,
/// laptop and paper. The values at the paper scale are the published ones. The smaller scales have
/// a higher learning rate, because smaller models need it.
constexpr ScaledSetting tuning[] = {
    {"training.steps", "20", "300", "1500"},
    {"training.rate", "1e-4", "1e-4", "5e-6"},
    {"training.evaluate_samples", "4", "50", "200"},
    {"training.schedule", "constant", "constant", "constant"},
    {"training.warm_up", "0", "0", "0"},
    {"training.batch", "4", "4", "4"},
};

/// Transformer blocks as in Llama.
const Settings shared{
    {"model.norm", "rms"}, {"model.order", "sequential"},    {"model.activation", "silu"},
    {"model.gated", "1"},  {"model.feed_forward_bias", "0"}, {"model.attention_bias", "0"},
    {"model.tied", "1"},   {"training.schedule", "cosine"},  {"training.clip", "1"}};

bool by_the_text(const RecipeOptions& options) {
  const std::string& name = options.optimizer;
  LONGHAND_CHECK(name.empty() || name == "published" || name == "text",
                 "--optimizer: expected \"published\" or \"text\", got ", quote(name));
  return name == "text";
}

}  // namespace

std::span<const AlgorithmicTask> algorithmic_tasks() { return tasks_of_paper; }

const AlgorithmicTask& algorithmic_task(std::string_view name) {
  const auto found = std::ranges::find(tasks_of_paper, name, &AlgorithmicTask::name);
  LONGHAND_CHECK(found != std::end(tasks_of_paper), "attentionspan: there is no task ", name);
  return *found;
}

std::vector<AlgorithmicTask> chosen_tasks(const RecipeOptions& options,
                                          std::span<const AlgorithmicTask> all) {
  if (options.tasks.empty()) return {all.begin(), all.end()};
  std::vector<AlgorithmicTask> tasks;
  for (const AlgorithmicTask* task : chosen("tasks", options.tasks, all)) tasks.push_back(*task);
  return tasks;
}

Settings optimizer_settings(const RecipeOptions& options) {
  if (by_the_text(options)) {
    return {{"training.beta1", "0.95"}, {"training.beta2", "0.999"}, {"training.decay", "0.2"}};
  }
  return {{"training.beta1", "0.9"}, {"training.beta2", "0.999"}, {"training.decay", "0.01"}};
}

std::string how_optimized(const RecipeOptions& options) {
  return by_the_text(options)
             ? "AdamW with the settings of the paper's text: betas 0.95 and 0.999, weight decay "
               "0.2."
             : "AdamW with the settings of the published program, which are its library's "
               "defaults: betas 0.9 and 0.999, weight decay 0.01. (--optimizer text selects those "
               "of the paper's text: 0.95, 0.999 and 0.2.)";
}

GridRun scratch_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more) {
  const std::string name(task.name);
  const Size& size = size_of(name, options.scale);
  Config config = recipe_config(name);
  for (const auto& [key, value] : shared) config.set(key, value);
  for (const auto& [key, value] : optimizer_settings(options)) config.set(key, value);
  config.set("model.deviation", std::string(size.deviation));
  config.set("model.layers", std::to_string(size.layers));
  config.set("model.width", std::to_string(size.width));
  config.set("model.heads", std::string(size.heads));
  config.set("training.steps", std::to_string(size.steps));
  config.set("training.warm_up", std::to_string(size.steps / 20));
  config.set("training.batch", std::to_string(size.batch));
  config.set("training.rate", std::string(size.rate));
  config.set("training.evaluate_every", std::to_string(size.steps / 10));
  config.set("training.evaluate_samples", options.scale == Scale::smoke ? "50" : "200");
  config.set("training.checkpoint_every", std::to_string(size.steps / 5));
  const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(number);
  config.set("training.seed", std::to_string(seed));
  if (!task.option.empty()) config.set(text("task.", task.option), std::string(task.learned));
  for (const auto& [key, value] : more) config.set(key, value);
  for (const auto& [key, value] : options.settings) config.set(key, value);
  return {text("scratch-", name, by_the_text(options) ? "-text" : "", "-seed-", seed), config};
}

GridRun tuned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                  const Settings& more) {
  const std::filesystem::path model = options.model;
  Config config = recipe_config(RunFolder(model).config(), task.name);
  config.set("task.instruction", "auto");
  config.set("task.examples", "auto");
  set_all(config, tuning, options.scale);
  for (const Settings& settings : {optimizer_settings(options), more, options.settings}) {
    set_all(config, settings);
  }
  const std::uint64_t seed = set_seed(config, options, number);
  return {text("tuned-", task.name, by_the_text(options) ? "-text" : "", "-seed-", seed, "-from-",
               mark_of(model)),
          std::move(config), model};
}

GridRun learned_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more) {
  return options.model.empty() ? scratch_run(task, number, options, more)
                               : tuned_run(task, number, options, more);
}

GridRun softmax_run(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options,
                    const Settings& more) {
  GridRun run = learned_run(task, number, options, more);
  const std::string heads = run.config.model_settings().heads;
  const std::string softmax = text("softmax:", head_count(heads));
  if (!options.model.empty() || heads == softmax) return run;
  run.config.set("model.heads", softmax);
  run.name += "-softmax";
  return run;
}

std::int64_t head_count(std::string_view heads) {
  std::int64_t count = 0;
  for (std::size_t colon = heads.find(':'); colon != std::string_view::npos;
       colon = heads.find(':', colon + 1)) {
    count += std::stoll(std::string(heads.substr(colon + 1)));
  }
  return count;
}

std::string learned_model(const RecipeOptions& options) {
  if (options.model.empty()) {
    return "The models are small and were trained from scratch on the task. Where repairs or "
           "attention measures require it, all their heads are softmax heads; otherwise they are "
           "the models of attentionspan/table6. The paper's models are fine-tuned and have 1 to "
           "1.5 billion parameters. ";
  }
  return text("The model is ", options.model,
              ", fine-tuned on each task (attentionspan/table2). The paper's models have 1 to 1.5 "
              "billion parameters. ");
}

std::vector<GridRun> Lineage::of_seeds(std::size_t i) const {
  std::vector<GridRun> runs;
  for (const std::vector<GridRun>& of_seed : seeds) runs.push_back(of_seed.at(i));
  return runs;
}

std::vector<Lineage> lineages(std::span<const AlgorithmicTask> tasks, const RecipeOptions& options,
                              const MakeLineage& make) {
  std::vector<Lineage> all;
  for (const AlgorithmicTask& task : tasks) {
    Lineage& lineage = all.emplace_back(Lineage{task, {}});
    for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 3); ++number) {
      lineage.seeds.push_back(make(task, number));
    }
  }
  return all;
}

std::vector<GridPiece> pieces_of(std::span<const Lineage> lineages, const RecipeOptions& options) {
  std::vector<GridPiece> pieces;
  for (const Lineage& lineage : lineages) {
    for (const std::vector<GridRun>& runs : lineage.seeds) {
      pieces.push_back({runs.front().name, runs, [runs, options] {
                          return train_runs(runs, options, beside_attentionspan());
                        }});
    }
  }
  return pieces;
}

bool train_all(std::span<const Lineage> lineages, const RecipeOptions& options,
               RecipeResult& result) {
  for (const GridPiece& piece : pieces_of(lineages, options)) {
    if (piece.make()) continue;
    result.stopped = true;
    return false;
  }
  for (const Lineage& lineage : lineages) {
    for (const std::vector<GridRun>& runs : lineage.seeds) {
      std::ranges::move(run_paths(runs, options, beside_attentionspan()),
                        std::back_inserter(result.runs));
    }
  }
  return true;
}

std::span<const std::string_view> beside_attentionspan() {
  static constexpr std::string_view recipes[] = {
      "attentionspan/table6", "attentionspan/table2", "attentionspan/table2-scratch",
      "attentionspan/table3", "attentionspan/table4", "attentionspan/table5",
      "attentionspan/sec6.4", "attentionspan/fig1",   "attentionspan/fig2"};
  return recipes;
}

std::unique_ptr<tasks::Task> scored_task(const Config& config, std::string_view distribution) {
  const std::string name = config.kind().name;
  const auto task = std::ranges::find(tasks_of_paper, name, &AlgorithmicTask::name);
  Config scored = config;
  if (task != std::end(tasks_of_paper) && !task->option.empty()) {
    scored.set(text("task.", task->option), std::string(task->scored));
  }
  return scored.task(distribution);
}

LoadedRun load_learned(const GridRun& run, const RecipeOptions& options) {
  LoadOptions how{.step = run.last_step()};
  for (const char* const flag : {"backend", "threads", "math"}) {
    const auto wanted = options.settings.find(std::string("compute.") + flag);
    if (wanted != options.settings.end()) how.compute[flag] = wanted->second;
  }
  return load_run(run_path(run, options, beside_attentionspan()), how);
}

EvaluationOptions fresh_samples(std::int64_t count, const RecipeOptions& options) {
  return {.samples = count, .seed = options.seed + 1000};
}

std::int64_t measured_samples(const RecipeOptions& options) {
  constexpr std::array<std::int64_t, 3> small{100, 500, 2000}, tuned{20, 100, 1000};
  return (options.model.empty() ? small : tuned)[static_cast<std::size_t>(options.scale)];
}

TaskScore score_task(const GridRun& run, std::string_view distribution,
                     const RecipeOptions& options, std::int64_t samples, bool decoded) {
  const LoadedRun loaded = load_learned(run, options);
  const auto task = scored_task(loaded.config, distribution);
  EvaluationOptions how = fresh_samples(samples, options);
  const tasks::Tally tally = evaluate(*loaded.model, *task, how);
  TaskScore score{.exact = tally.at("sequences").mean(),
                  .partial = tally.at("tokens").mean(),
                  .samples = tally.at("sequences").count,
                  .tokens = tally.at("tokens").count};
  how.reading = Reading::decoded;
  if (decoded) score.decoded = evaluate(*loaded.model, *task, how).at("sequences").mean();
  return score;
}

void TaskScores::add(const TaskScore& score) {
  exact.push_back(score.exact);
  partial.push_back(score.partial);
  if (score.decoded) decoded.push_back(*score.decoded);
  samples = score.samples;
  tokens = score.tokens;
}

void add_percent(RecipeResult& result, const std::string& row, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of) {
  RecipeResult as_shares;
  add_row(as_shares, row, column, shares, paper, of);
  for (Row& one : as_shares.rows) {
    one.value *= 100;
    if (one.low) *one.low *= 100;
    if (one.high) *one.high *= 100;
    result.rows.push_back(std::move(one));
  }
}

void add_percent(RecipeResult& result, const AlgorithmicTask& task, const std::string& column,
                 std::span<const double> shares, std::optional<double> paper, std::int64_t of) {
  add_percent(result, std::string(task.title), column, shares, paper, of);
}

std::span<const TunedFigure> tuned_figures() { return tuned; }

std::string tuned_table() {
  std::vector<std::vector<std::string>> body;
  for (const TunedFigure& f : tuned) {
    body.push_back(
        {std::string(f.model), std::string(f.task), text(f.id), text(f.ood), text(f.partial)});
  }
  return html::table({"model", "task", "ID Acc.", "OOD Acc.", "OOD Partial Acc."}, body);
}

}  // namespace longhand::app
