#include <algorithm>
#include <array>
#include <iterator>

#include "apps/html/chart.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/reinforcement.h"
#include "apps/run/repair.h"
#include "apps/run/sweep.h"

/// Recipes of AttentionSpan's section 6 and Figure 2, which change the attention of a trained model
/// so that it answers more samples out of distribution.
namespace longhand::app {
namespace {

/// How a repair is trained: the number of steps at each scale, and the peak learning rate.
struct Training {
  // Steps at each scale. small: for models trained from scratch; tuned: for the fine-tuned model of
  // --model.
  std::array<std::int64_t, 3> small, tuned;
  std::string_view rate;

  /// Number of training steps for a task. At the laptop scale, multiplication has a quarter of the
  /// steps. With samples of up to 170 characters and the widest model, its repair would otherwise
  /// take longer than those of all other tasks together.
  std::int64_t steps(std::string_view task, const RecipeOptions& options) const {
    if (!options.model.empty()) return tuned[static_cast<std::size_t>(options.scale)];
    const bool costly = options.scale == Scale::laptop && task == "multiplication";
    return small[static_cast<std::size_t>(options.scale)] / (costly ? 4 : 1);
  }
};

/// The tasks selected by --tasks. The default is all tasks of the paper or, at the smoke scale, the
/// two tasks that the models of this scale learn.
std::vector<AlgorithmicTask> tasks_of(const RecipeOptions& options) {
  if (options.scale == Scale::smoke && options.tasks.empty()) {
    return {algorithmic_task("reversal"), algorithmic_task("successor")};
  }
  return chosen_tasks(options, algorithmic_tasks());
}

/// A run with zero steps, which stores an untrained softmax model. This model is repaired as a
/// control.
GridRun unlearned(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options) {
  GridRun run = softmax_run(task, number, options,
                            {{"training.steps", "0"},
                             {"training.warm_up", "0"},
                             {"training.evaluate_every", "0"},
                             {"training.checkpoint_every", "0"}});
  run.name += "-unlearned";
  return run;
}

GridRun repair_of(const GridRun& model, Repair method, const Training& training,
                  const RecipeOptions& options) {
  const std::string task = model.config.kind().name;
  Config config = repaired(model.config, method, task);
  config.set("training.rate_at", "end");  // the same value as in recipe_config()
  for (const auto& [key, value] : optimizer_settings(options)) config.set(key, value);
  if (method != Repair::rope_off) {
    const std::int64_t steps = training.steps(task, options);
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
          run_path(model, options, beside_attentionspan()), model.last_step()};
}

/// A sentence for the results page, which says that multiplication is repaired with fewer steps
/// than the other tasks. Empty if the number of steps is the same.
std::string of_products(const RecipeOptions& options) {
  const bool fewer = options.scale == Scale::laptop && options.model.empty();
  return fewer ? " Repairs of multiplication have a quarter of the steps of the other tasks." : "";
}

std::int64_t scored(const RecipeOptions& options) {
  if (!options.model.empty()) return measured_samples(options);
  return options.scale == Scale::smoke ? 200 : 1000;
}

/// Adds the shares of right answers and of right tokens, in and out of distribution, in percent.
/// `runs` has one run per seed. `when` is the end of the column names, such as "before" in the name
/// "ID before".
void add_scores(RecipeResult& result, const std::string& row, const std::string& when,
                std::span<const GridRun> runs, const RecipeOptions& options) {
  TaskScores id, ood;
  for (const GridRun& run : runs) {
    for (const auto& [distribution, scores] : {std::pair("train", &id), std::pair("ood", &ood)}) {
      scores->add(score_task(run, distribution, options, scored(options), false));
    }
  }
  for (const auto& [title, scores] : {std::pair("ID ", &id), std::pair("OOD ", &ood)}) {
    add_percent(result, row, text(title, when), scores->exact, {}, scores->samples);
    add_percent(result, row, text(title, "partial ", when), scores->partial, {}, scores->tokens);
  }
}

void explain(RecipeResult& result, const RecipeOptions& options, std::size_t seeds,
             const std::string& more) {
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("All figures are percent, under teacher forcing, on ", scored(options),
               " samples of each distribution that are not used in training. Accuracy is the share "
               "of completely right answers, partial accuracy the share of right tokens. ",
               how_intervals(static_cast<std::int64_t>(seeds)), " ", learned_model(options),
               how_optimized(options))) +
          html::paragraph(more));
}

/// Endings of the names under which the scores of a run appear in the table. The name of the row is
/// the task's title followed by the member `row`, such as ", control". The names of the columns end
/// in the member `when`, such as "before".
struct ScoredRun {
  const char *row, *when;
};

/// Trains the runs of all lineages (a lineage has the runs of one task) and scores them.
/// scored_runs[i] names the results of run number i of a lineage.
RecipeResult scores_of(const std::vector<Lineage>& all, std::span<const ScoredRun> scored_runs,
                       const RecipeOptions& options, const std::string& more) {
  RecipeResult result;
  if (!train_all(all, options, result)) return result;
  for (const Lineage& lineage : all) {
    for (std::size_t i = 0; i < scored_runs.size(); ++i) {
      add_scores(result, text(lineage.task.title, scored_runs[i].row), scored_runs[i].when,
                 lineage.of_seeds(i), options);
    }
  }
  explain(result, options, all.front().seeds.size(), more);
  return result;
}

// The repair of section 6.4, which trains one column of every head's W_Q and W_K.

constexpr Training of_columns{{400, 2000, 5000}, {20, 400, 5000}, "1e-3"};

}  // namespace

GridRun columns_repair(const GridRun& model, const RecipeOptions& options) {
  return repair_of(model, Repair::columns, of_columns, options);
}

namespace {

std::vector<Lineage> columns_runs(const RecipeOptions& options) {
  return lineages(tasks_of(options), options, [&](const auto& task, std::int64_t number) {
    std::vector<GridRun> runs;
    for (const GridRun& model :
         {softmax_run(task, number, options), unlearned(task, number, options)}) {
      runs.push_back(model);
      runs.push_back(columns_repair(model, options));
    }
    return runs;
  });
}

RecipeResult columns(const RecipeOptions& options) {
  static constexpr ScoredRun runs[] = {
      {"", "before"}, {"", "after"}, {", control", "before"}, {", control", "after"}};
  return scores_of(columns_runs(options), runs, options,
                   "Only the last column of every head's queries and keys is trained, on samples "
                   "out of distribution. The control is the same model before its first training "
                   "step, so it shows what these columns learn alone. The paper prints 0.18 before "
                   "and 0.87 after the repair, for Llama-3.2-1B on additions of 60 digits (Table "
                   "5), and states that its control on addition failed." +
                       of_products(options));
}

const RegisterRecipe recipe64{
    {.id = "attentionspan/sec6.4",
     .summary = "one column of every head's W_Q and W_K fine-tuned, and its control",
     .scales = {{Scale::smoke, "two tasks: two minutes on 2 cores"},
                {Scale::laptop, "all six tasks, three seeds: an hour and ten minutes on one core"},
                {Scale::paper, "all six tasks at width 512; for a GPU"}},
     .run = columns,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(columns_runs(options), options); },
     .takes = {"model", "tasks", "optimizer"}}};

// The repair of section 6.5, which switches rotary positions off at inference.

std::vector<Lineage> rope_off_runs(const RecipeOptions& options) {
  return lineages({{algorithmic_task("reversal")}}, options,
                  [&](const auto& task, std::int64_t number) {
                    const GridRun model = softmax_run(task, number, options);
                    return std::vector{model, repair_of(model, Repair::rope_off, {}, options)};
                  });
}

RecipeResult rope_off(const RecipeOptions& options) {
  static constexpr ScoredRun runs[] = {{"", "as trained"}, {"", "without RoPE"}};
  return scores_of(rope_off_runs(options), runs, options,
                   "Queries and keys are not rotated at inference; the weights are the same. For a "
                   "fine-tuned model of a billion parameters the paper reports no loss in "
                   "distribution and the same failure out of distribution. A small model whose "
                   "only position information is rotary cannot solve reversal without it.");
}

const RegisterRecipe recipe65{
    {.id = "attentionspan/sec6.5",
     .summary = "string reversal with rotary positions off at inference",
     .scales = {{Scale::smoke, "a small model: half a minute on 2 cores"},
                {Scale::laptop,
                 "the model of attentionspan/table6, three seeds: two minutes on one core"},
                {Scale::paper, "width 512; for a GPU"}},
     .run = rope_off,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(rope_off_runs(options), options); },
     .takes = {"model", "optimizer"}}};

// The repairs of sections 6.2 and 6.3, which train a bias of every head's scores.

constexpr Training of_biases{{150, 1000, 3000}, {20, 400, 3000}, "1e-2"};

/// A task, and settings with which all its samples are out of distribution and have the same
/// length. They are needed because the paper trains a separate bias matrix for each length.
struct OneLength {
  std::string_view task;
  Settings settings;
};
const OneLength one_lengths[] = {
    {"reversal", {{"task.length", "20"}}},
    {"addition", {{"task.digits", "8"}}},
    {"multiplication", {{"task.digits", "5"}}},
    {"ffml", {{"task.commands", "50"}}},
    {"value-assignment", {{"task.pairs", "20"}, {"task.length", "15"}}},
    {"successor", {{"task.start", "100-900"}, {"task.numbers", "5"}}}};

const OneLength& one_length_of(std::string_view task) {
  return *std::ranges::find(one_lengths, task, &OneLength::task);
}

/// The run that trains a bias matrix on samples of a single length.
GridRun matrix_of_one_length(const GridRun& model, const RecipeOptions& options) {
  GridRun run = repair_of(model, Repair::bias_matrix, of_biases, options);
  run.name += "-one-length";
  set_all(run.config, one_length_of(model.config.kind().name).settings);
  run.config.set("training.train_on", "train");
  return run;
}

/// Adds the accuracy on samples of a single out-of-distribution length, before and after a bias
/// matrix is trained on that length.
void add_one_length(RecipeResult& result, const Lineage& lineage, const RecipeOptions& options) {
  const Settings& settings = one_length_of(lineage.task.name).settings;
  for (const auto& [place, column] :
       {std::pair(0, "one OOD length before"), std::pair(3, "one OOD length with its matrix")}) {
    TaskScores scores;
    for (const GridRun& run : lineage.of_seeds(static_cast<std::size_t>(place))) {
      const LoadedRun loaded = load_learned(run, options);
      Config config = loaded.config;
      set_all(config, settings);
      const tasks::Tally tally =
          evaluate(*loaded.model, *config.task("train"), fresh_samples(scored(options), options));
      scores.exact.push_back(tally.at("sequences").mean());
      scores.samples = tally.at("sequences").count;
    }
    add_percent(result, lineage.task, column, scores.exact, {}, scores.samples);
  }
}

std::vector<Lineage> biases_runs(const RecipeOptions& options) {
  return lineages(tasks_of(options), options, [&](const auto& task, std::int64_t number) {
    std::vector<GridRun> runs{softmax_run(task, number, options)};
    for (const Repair method : {Repair::bias_matrix, Repair::bias_heads}) {
      runs.push_back(repair_of(runs.front(), method, of_biases, options));
    }
    runs.push_back(matrix_of_one_length(runs.front(), options));
    return runs;
  });
}

RecipeResult biases(const RecipeOptions& options) {
  static constexpr ScoredRun runs[] = {{"", "before"}, {"", "with a matrix"}, {"", "with heads"}};
  const std::vector<Lineage> all = biases_runs(options);
  RecipeResult result = scores_of(
      all, runs, options,
      "The model is frozen. Only a bias of every head's scores is trained, on samples out of "
      "distribution: a matrix for each head (Eq. 6), or the attention weights of an additional "
      "head for each head (Eq. 8). The paper prints no figures. It states that the matrix is "
      "effective in String Reversal and fails if the right position depends on the contents, and "
      "that additional heads restore every task. The paper trains a matrix for each length. The "
      "last two columns therefore use samples of a single length out of distribution (strings of "
      "20, sums of 8 digits, products of 5, 50 commands, 20 pairs and strings of 15, series of 5), "
      "and a matrix trained on that length only." +
          of_products(options));
  for (const Lineage& lineage : all) {
    if (!result.stopped) add_one_length(result, lineage, options);
  }
  return result;
}

const RegisterRecipe recipe62{
    {.id = "attentionspan/sec6.2",
     .summary = "a trained bias of the scores of a frozen model: a matrix or additional heads",
     .scales = {{Scale::smoke, "two tasks: three minutes on 2 cores"},
                {Scale::laptop, "all six tasks, three seeds: an hour on one core"},
                {Scale::paper, "all six tasks at width 512; for a GPU"}},
     .run = biases,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(biases_runs(options), options); },
     .takes = {"model", "tasks", "optimizer"}}};

/// A task of Figure 2. Its curves vary an option of the task over the values in `inside` (in
/// distribution) and `outside` (out of distribution). `gain` is the gain in accuracy that the paper
/// reports. `outside_settings` are further settings out of distribution, such as longer strings.
struct Drawn {
  std::string_view task, inside, outside;
  double gain;  // gain in accuracy, in percentage points
  Settings outside_settings = {};

  /// The values of the varied option at which a model with this configuration is scored, in
  /// ascending order.
  std::vector<SweepPoint> points(const Config& config) const {
    std::vector<SweepPoint> all = sweep_points(config, {parse_axis(std::string(inside))});
    Config longer = config;
    set_all(longer, outside_settings);
    std::ranges::move(sweep_points(longer, {parse_axis(std::string(outside))}),
                      std::back_inserter(all));
    return all;
  }
};
const Drawn drawn[] = {
    {"reversal", "length=5..10:5", "length=15..50:5", 90},
    {"value-assignment", "pairs=5", "pairs=10..50:5", 45, {{"task.length", "10-20"}}}};

/// The tasks selected by --tasks; by default both tasks of Figure 2.
std::vector<Drawn> drawn_of(const RecipeOptions& options) {
  std::vector<AlgorithmicTask> both;
  for (const Drawn& one : drawn) both.push_back(algorithmic_task(one.task));
  std::vector<Drawn> some;
  for (const AlgorithmicTask& task : chosen_tasks(options, both)) {
    some.push_back(*std::ranges::find(drawn, task.name, &Drawn::task));
  }
  return some;
}

/// Number of samples on which the search for the best reinforcement scores each setting.
std::int64_t searched_samples(const RecipeOptions& options) {
  return options.scale == Scale::smoke || !options.model.empty() ? 50 : 200;
}

/// The model of a run, with selected heads reinforced: they attend more to the reference tokens. A
/// search finds the best settings of the reinforcement. `found` receives a description of them.
std::unique_ptr<nn::Decoder> reinforced_best(const LoadedRun& plain, const GridRun& model,
                                             const RecipeOptions& options, std::string& found) {
  const std::string name = model.config.kind().name;
  const auto path = run_path(model, options, beside_attentionspan());
  const RunFolder folder(path);
  const auto checkpoint =
      nn::CheckpointStore(folder.checkpoints(), 1).path(find_step(folder, plain.step));
  const EvaluationOptions samples{.samples = std::min(searched_samples(options), scored(options)),
                                  .seed = options.seed + 2000};
  const auto ranking = softmax_heads(
      *plain.model, rank_heads(*plain.model, *scored_task(plain.config, "train"), samples));
  ReinforcementGrid grid{.heads = {}, .amounts = {0.5, 1, 2, 4, 8, 16, 32}, .thresholds = {0, 0.1}};
  for (std::int64_t n = 1; n <= std::ssize(ranking); n = n < 4 ? n + 1 : 2 * n) {
    grid.heads.push_back(n);
  }
  const auto searched = scored_task(plain.config, "ood");
  const Tried best =
      search(plain.config, checkpoint, *plain.backend, ranking, grid, *searched, samples).front();
  const auto& [heads, amount, threshold] = best.setting;
  found += text(name, ", seed ", model.config.training().seed, ": ", heads, " of ", ranking.size(),
                " heads, delta ", amount, ", threshold ", threshold, ". ");
  auto made =
      reinforced_model(reinforced(plain.config, name, threshold), *plain.backend, checkpoint);
  reinforce(*made, ranking, heads, amount);
  return made;
}

std::vector<Lineage> figure2_runs(const RecipeOptions& options) {
  std::vector<AlgorithmicTask> tasks;
  for (const Drawn& one : drawn_of(options)) tasks.push_back(algorithmic_task(one.task));
  return lineages(tasks, options, [&](const auto& task, std::int64_t number) {
    return std::vector{softmax_run(task, number, options)};
  });
}

/// The scores of the runs of all seeds at every point of a curve: `before` without and `after` with
/// reinforced heads.
struct BeforeAndAfter {
  std::vector<std::vector<SweepPoint>> before = {}, after = {};

  /// The metric's value at point p, for each seed.
  static std::vector<double> at(const std::vector<std::vector<SweepPoint>>& seeds, std::size_t p,
                                std::string_view metric) {
    std::vector<double> means;
    for (const auto& points : seeds) means.push_back(points[p].tally.at(metric).mean());
    return means;
  }
  /// For each seed, the gain of a metric by reinforcement in percentage points, averaged over the
  /// points of the curve.
  std::vector<double> gains(std::string_view metric) const {
    std::vector<double> all(before.size());
    const std::size_t points = before.front().size();
    for (std::size_t p = 0; p < points; ++p) {
      const std::vector<double> was = at(before, p, metric), is = at(after, p, metric);
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] += 100 * (is[i] - was[i]) / static_cast<double>(points);
      }
    }
    return all;
  }
};

BeforeAndAfter reinforce_all(std::span<const GridRun> runs, const Drawn& curve,
                             const RecipeOptions& options, std::string& found) {
  BeforeAndAfter scores;
  for (const GridRun& run : runs) {
    const LoadedRun plain = load_learned(run, options);
    const auto made = reinforced_best(plain, run, options, found);
    auto& before = scores.before.emplace_back(curve.points(plain.config));
    auto& after = scores.after.emplace_back(before);
    sweep(*plain.model, before, fresh_samples(scored(options), options));
    sweep(*made, after, fresh_samples(scored(options), options));
  }
  return scores;
}

std::string chart_of(const BeforeAndAfter& scores, const std::vector<SweepAxis>& axes) {
  html::LineChart chart{.x_label = axes[0].option, .y_label = "answers right", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  for (const auto& [name, runs] :
       {std::pair("vanilla", &scores.before), std::pair("reinforced", &scores.after)}) {
    std::ranges::move(sweep_series_over(name, *runs, axes, "sequences"),
                      std::back_inserter(chart.series));
  }
  const std::size_t seeds = scores.before.size();
  return html::figure(
      line_chart(chart),
      text("Accuracy against ", axes[0].option,
           seeds == 1 ? ", with 95% intervals"
                      : ": mean over seeds, with the range from the lowest to the highest"));
}

RecipeResult figure2(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Drawn> curves = drawn_of(options);
  const std::vector<Lineage> all = figure2_runs(options);
  if (!train_all(all, options, result)) return result;
  std::string found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string title(all[i].task.title);
    const std::vector<SweepAxis> axes{parse_axis(std::string(curves[i].outside))};
    const BeforeAndAfter scores = reinforce_all(all[i].of_seeds(0), curves[i], options, found);
    const std::vector<SweepPoint>& points = scores.before.front();
    for (std::size_t p = 0; p < points.size(); ++p) {
      const std::string row = text(title, ", ", name_of(points[p], axes));
      for (const auto& [metric, what] :
           {std::pair("sequences", ""), std::pair("tokens", "partial, ")}) {
        const std::int64_t count = points[p].tally.at(metric).count;
        add_percent(result, row, text(what, "vanilla"), scores.at(scores.before, p, metric), {},
                    count);
        add_percent(result, row, text(what, "reinforced"), scores.at(scores.after, p, metric), {},
                    count);
      }
    }
    for (const auto& [metric, what] :
         {std::pair("sequences", "mean gain"), std::pair("tokens", "mean partial gain")}) {
      const bool whole = std::string_view(metric) == "sequences";
      add_row(result, title, what, scores.gains(metric),
              whole ? std::optional(curves[i].gain) : std::nullopt);
    }
    result.sections.emplace_back(title, chart_of(scores, axes));
  }
  explain(
      result, options, all.front().seeds.size(),
      "Heads are ranked by their attention on reference tokens in distribution. Settings are the "
      "best of a grid on samples out of distribution that are not scored. Found: " +
          found +
          "With more than 5 pairs the strings of Value Assignment have 10 to 20 letters, as out of "
          "distribution. The paper's gains are taken from its text: about 90 points in String "
          "Reversal, and 40 to 50 in Value Assignment, for which the table prints the middle.");
  return result;
}

const RegisterRecipe recipe2{
    {.id = "attentionspan/fig2",
     .summary = "accuracy against length with heads reinforced at reference tokens",
     .scales = {{Scale::smoke, "two tasks: three minutes on 2 cores"},
                {Scale::laptop, "two tasks, three seeds: a quarter of an hour on one core"},
                {Scale::paper, "two tasks at width 512; for a GPU"}},
     .run = figure2,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(figure2_runs(options), options); },
     .takes = {"model", "tasks", "optimizer"}}};

}  // namespace
}  // namespace longhand::app
