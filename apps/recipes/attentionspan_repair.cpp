#include <algorithm>
#include <array>

#include "apps/html/chart.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/reinforcement.h"
#include "apps/run/repair.h"
#include "apps/run/sweep.h"

/// AttentionSpan, section 6 and Figure 2: the small models of its tasks with their attention
/// repaired.
namespace longhand::app {
namespace {

/// Steps, at each scale, and peak rate of what a repair trains.
struct Training {
  std::array<std::int64_t, 3> small, tuned;  // of models from scratch; of --model's
  std::string_view rate;

  std::int64_t steps(const RecipeOptions& options) const {
    return (options.model.empty() ? small : tuned)[static_cast<std::size_t>(options.scale)];
  }
};

/// Those of the paper's tasks, and at the smoke scale those alone that its models learn.
std::vector<AlgorithmicTask> tasks_of(const RecipeOptions& options) {
  if (options.scale == Scale::smoke && options.tasks.empty()) {
    return {algorithmic_task("reversal"), algorithmic_task("successor")};
  }
  return chosen_tasks(options, algorithmic_tasks());
}

/// The model with softmax heads, which repairs are made for, before its first step.
GridRun unlearned(const AlgorithmicTask& task, const RecipeOptions& options) {
  GridRun run = softmax_run(task, 0, options,
                            {{"training.steps", "0"},
                             {"training.warm_up", "0"},
                             {"training.evaluate_every", "0"},
                             {"training.checkpoint_every", "0"}});
  run.name += "-unlearned";
  return run;
}

GridRun repair_of(const GridRun& model, Repair method, const Training& training,
                  const RecipeOptions& options) {
  Config config = repaired(model.config, method, model.config.text("task.name"));
  for (const auto& [key, value] : optimizer_settings(options)) config.set(key, value);
  if (method != Repair::rope_off) {
    const std::int64_t steps = training.steps(options);
    config.set("training.steps", std::to_string(steps));
    config.set("training.warm_up", std::to_string(steps / 20));
    config.set("training.rate", std::string(training.rate));
    config.set("training.schedule", "cosine");
  }
  for (const char* const key : {"training.batch", "training.seed"}) {
    config.set(key, model.config.text(key));
  }
  config.set("training.evaluate_samples", "50");
  for (const auto& [key, value] : options.settings) config.set(key, value);
  return {text(model.name, '-', name_of(method)), config,
          run_path(model, options, beside_attentionspan())};
}

std::int64_t scored(const RecipeOptions& options) {
  if (!options.model.empty()) return measured_samples(options);
  return options.scale == Scale::smoke ? 200 : 1000;
}

/// A share in percent, with Wilson's interval.
Row percent(const std::string& row, const std::string& column, const tasks::Metric& metric) {
  const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
  return {.row = row,
          .column = column,
          .value = 100 * metric.mean(),
          .low = 100 * interval.low,
          .high = 100 * interval.high};
}

/// Exact and partial accuracy of a run in and out of distribution, percent: "ID before" and so on.
void add_scores(RecipeResult& result, const std::string& row, const std::string& when,
                const GridRun& run, const RecipeOptions& options) {
  const LoadedRun loaded = load_learned(run, options);
  for (const auto& [distribution, title] : {std::pair("train", "ID "), std::pair("ood", "OOD ")}) {
    const auto task = scored_task(loaded.config, distribution);
    const tasks::Tally tally =
        evaluate(*loaded.model, *task, fresh_samples(scored(options), options));
    for (const auto& [name, what] : {std::pair("sequences", ""), std::pair("tokens", "partial ")}) {
      result.rows.push_back(percent(row, text(title, what, when), tally.at(name)));
    }
  }
}

void explain(RecipeResult& result, const RecipeOptions& options, const std::string& more) {
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text("All figures are percent, under teacher forcing, on ", scored(options),
                           " samples of each distribution that training does not score. Accuracy "
                           "is the share of answers right as a whole, partial that of their "
                           "tokens; intervals are Wilson's, 95%. ",
                           learned_model(options), how_optimized(options))) +
          html::paragraph(more));
}

// Section 6.4.

constexpr Training of_columns{{400, 2000, 5000}, {20, 400, 5000}, "1e-3"};

}  // namespace

GridRun columns_repair(const GridRun& model, const RecipeOptions& options) {
  return repair_of(model, Repair::columns, of_columns, options);
}

namespace {

RecipeResult columns(const RecipeOptions& options) {
  RecipeResult result;
  std::vector<GridRun> runs;
  for (const AlgorithmicTask& task : tasks_of(options)) {
    const GridRun learned = softmax_run(task, 0, options), fresh = unlearned(task, options);
    for (const GridRun& model : {learned, fresh}) {
      runs.push_back(model);
      runs.push_back(columns_repair(model, options));
    }
  }
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;
  const auto tasks = tasks_of(options);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::string title(tasks[t].title);
    add_scores(result, title, "before", runs[4 * t], options);
    add_scores(result, title, "after", runs[4 * t + 1], options);
    add_scores(result, title + ", control", "before", runs[4 * t + 2], options);
    add_scores(result, title + ", control", "after", runs[4 * t + 3], options);
  }
  explain(result, options,
          "Of every head's queries and keys the last column learns on samples out of "
          "distribution, and nothing else. The control is the same model before its first step: "
          "what it learns by these columns alone. The paper prints 0.18 before and 0.87 after, for "
          "Llama-3.2-1B on additions of 60 digits (Table 5), and says that its control, on "
          "addition, failed.");
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe64{
    {.id = "attentionspan/sec6.4",
     .summary = "one column of every head's W_Q and W_K fine-tuned, and its control",
     .scales = {{Scale::smoke, "two tasks: two minutes on 2 cores"},
                {Scale::laptop, "all six tasks: two hours on 2 cores by estimate"},
                {Scale::paper, "all six tasks at width 512; for a GPU"}},
     .run = columns,
     .takes = {"model", "tasks", "optimizer"}}};

// Section 6.5.

RecipeResult rope_off(const RecipeOptions& options) {
  RecipeResult result;
  const GridRun model = softmax_run(algorithmic_task("reversal"), 0, options);
  const GridRun unturned = repair_of(model, Repair::rope_off, {}, options);
  const std::vector<GridRun> runs{model, unturned};
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;
  add_scores(result, "String Reversal", "as trained", model, options);
  add_scores(result, "String Reversal", "without RoPE", unturned, options);
  explain(result, options,
          "Queries and keys do not turn at inference; the weights are the same. The paper, of a "
          "fine-tuned model of a billion parameters: no loss in distribution, the same failure out "
          "of it. A small model that learned reversal with nothing but rotary positions to tell "
          "places by has no such way around them.");
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe65{
    {.id = "attentionspan/sec6.5",
     .summary = "string reversal with rotary positions off at inference",
     .scales = {{Scale::smoke, "a small model: half a minute on 2 cores"},
                {Scale::laptop, "width 128: ten minutes on 2 cores by estimate"},
                {Scale::paper, "width 512; for a GPU"}},
     .run = rope_off,
     .takes = {"model", "optimizer"}}};

// Sections 6.2 and 6.3.

constexpr Training of_biases{{150, 1000, 3000}, {20, 400, 3000}, "1e-2"};

RecipeResult biases(const RecipeOptions& options) {
  RecipeResult result;
  std::vector<GridRun> runs;
  for (const AlgorithmicTask& task : tasks_of(options)) {
    const GridRun model = softmax_run(task, 0, options);
    runs.push_back(model);
    for (const Repair method : {Repair::bias_matrix, Repair::bias_heads}) {
      runs.push_back(repair_of(model, method, of_biases, options));
    }
  }
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;
  const auto tasks = tasks_of(options);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::string title(tasks[t].title);
    add_scores(result, title, "before", runs[3 * t], options);
    add_scores(result, title, "with a matrix", runs[3 * t + 1], options);
    add_scores(result, title, "with heads", runs[3 * t + 2], options);
  }
  explain(result, options,
          "The model is frozen; a bias of every head's scores learns on samples out of "
          "distribution: a matrix for each head (Eq. 6), or the weights of a further head for each "
          "(Eq. 8). The paper prints no figures: the matrix is effective in String Reversal and "
          "fails where contents decide, the heads restore every task.");
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe62{
    {.id = "attentionspan/sec6.2",
     .summary = "a trained bias of the scores beside frozen models, a matrix or further heads",
     .scales = {{Scale::smoke, "two tasks: three minutes on 2 cores"},
                {Scale::laptop, "all six tasks: hours on 2 cores by estimate"},
                {Scale::paper, "all six tasks at width 512; for a GPU"}},
     .run = biases,
     .takes = {"model", "tasks", "optimizer"}}};

// Figure 2.

/// A task of the figure, its option against which accuracy is drawn, and the paper's gain.
struct Drawn {
  std::string_view task, lengths;
  double gain;  // percent
};
constexpr Drawn drawn[] = {{"reversal", "length=5..50:5", 90},
                           {"value-assignment", "pairs=5..50:5", 45}};

/// Those of --tasks; both where it is not given.
std::vector<Drawn> drawn_of(const RecipeOptions& options) {
  std::vector<AlgorithmicTask> both;
  for (const Drawn& one : drawn) both.push_back(algorithmic_task(one.task));
  std::vector<Drawn> some;
  for (const AlgorithmicTask& task : chosen_tasks(options, both)) {
    some.push_back(*std::ranges::find(drawn, task.name, &Drawn::task));
  }
  return some;
}

/// Samples that each setting of the search is scored on.
std::int64_t searched_samples(const RecipeOptions& options) {
  return options.scale == Scale::smoke || !options.model.empty() ? 50 : 200;
}

/// Our model with the best of the settings; what was found is told in words.
std::unique_ptr<nn::Decoder> reinforced_best(const LoadedRun& plain, const GridRun& model,
                                             const RecipeOptions& options, std::string& found) {
  const std::string name = model.config.text("task.name");
  const auto path = run_path(model, options, beside_attentionspan());
  const RunFolder folder(path);
  const auto checkpoint =
      nn::CheckpointStore(folder.checkpoints(), 1).path(find_step(folder, plain.step));
  const EvaluationOptions samples{.samples = std::min(searched_samples(options), scored(options)),
                                  .seed = options.seed + 2000};
  const auto ranking = softmax_heads(
      *plain.model, rank_heads(*plain.model, *scored_task(plain.config, "train"), samples));
  ReinforcementGrid grid{.heads = {}, .amounts = {0.5, 1, 2, 4}, .thresholds = {0, 0.1}};
  for (std::int64_t n = 1; n <= std::ssize(ranking); n = n < 4 ? n + 1 : 2 * n) {
    grid.heads.push_back(n);
  }
  const auto searched = scored_task(plain.config, "ood");
  const Tried best =
      search(plain.config, checkpoint, *plain.backend, ranking, grid, *searched, samples).front();
  const auto& [heads, amount, threshold] = best.setting;
  found += text(name, ": ", heads, " of ", ranking.size(), " heads, delta ", amount, ", threshold ",
                threshold, ". ");
  auto made =
      reinforced_model(reinforced(plain.config, name, threshold), *plain.backend, checkpoint);
  reinforce(*made, ranking, heads, amount);
  return made;
}

RecipeResult figure2(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Drawn> curves = drawn_of(options);
  std::vector<GridRun> runs;
  for (const Drawn& one : curves)
    runs.push_back(softmax_run(algorithmic_task(one.task), 0, options));
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;
  std::string found;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string title(algorithmic_task(curves[i].task).title);
    const LoadedRun plain = load_learned(runs[i], options);
    const auto made = reinforced_best(plain, runs[i], options, found);
    const std::vector<SweepAxis> axes{parse_axis(curves[i].lengths)};
    auto before = sweep_points(plain.config, axes), after = before;
    sweep(*plain.model, before, fresh_samples(scored(options), options));
    sweep(*made, after, fresh_samples(scored(options), options));
    html::LineChart chart{.x_label = axes[0].option, .y_label = "answers right", .series = {}};
    chart.y_low = 0;
    chart.y_high = 1;
    for (const auto& [name, points] : {std::pair("vanilla", &before), std::pair("with", &after)}) {
      for (auto& series : sweep_series(name, *points, axes, "sequences")) {
        chart.series.push_back(std::move(series));
      }
    }
    double gain = 0, partial = 0;
    for (std::size_t p = 0; p < before.size(); ++p) {
      const std::string at = text(title, ", ", name_of(before[p], axes));
      const auto add = [&](const char* metric, const std::string& what, double& mean) {
        const tasks::Metric &was = before[p].tally.at(metric), &is = after[p].tally.at(metric);
        result.rows.push_back(percent(at, what + "vanilla", was));
        result.rows.push_back(percent(at, what + "reinforced", is));
        mean += 100 * (is.mean() - was.mean()) / static_cast<double>(before.size());
      };
      add("sequences", "", gain);
      add("tokens", "partial, ", partial);
    }
    result.rows.push_back(
        {.row = title, .column = "mean gain", .value = gain, .paper = curves[i].gain});
    result.rows.push_back({.row = title, .column = "mean partial gain", .value = partial});
    result.sections.emplace_back(
        title, html::figure(line_chart(chart),
                            text("Accuracy against ", axes[0].option, ", with 95% intervals")));
  }
  explain(result, options,
          "Heads are ranked by their attention on reference tokens in distribution; settings are "
          "the best of a grid on samples out of distribution, others than those scored. Found: " +
              found +
              "The paper's gains are read off its text: about 90 points in String Reversal, 40 to "
              "50 in Value Assignment.");
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe2{
    {.id = "attentionspan/fig2",
     .summary = "accuracy against length with heads reinforced at reference tokens",
     .scales = {{Scale::smoke, "two tasks: three minutes on 2 cores"},
                {Scale::laptop, "two tasks at width 128: half an hour on 2 cores by estimate"},
                {Scale::paper, "two tasks at width 512; for a GPU"}},
     .run = figure2,
     .takes = {"model", "tasks", "optimizer"}}};

}  // namespace
}  // namespace longhand::app
