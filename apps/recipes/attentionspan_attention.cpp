#include <algorithm>
#include <array>

#include "apps/recipes/attentionspan.h"
#include "apps/run/attention_report.h"

/// Recipes of AttentionSpan's Tables 3 to 5, which compare the attention of right and wrong
/// predictions and measure the entropy of attention. Models are measured on samples of the trained
/// lengths and on longer ones.
namespace longhand::app::attentionspan_attention {
namespace {

constexpr std::array<std::string_view, 5> measured_tasks{"reversal", "value-assignment", "addition",
                                                         "ffml", "successor"};

std::vector<AlgorithmicTask> tasks_measured(const RecipeOptions& options) {
  std::vector<AlgorithmicTask> tasks;
  for (const std::string_view name : measured_tasks) tasks.push_back(algorithmic_task(name));
  return chosen_tasks(options, tasks);
}

/// The run of a model whose attention is measured. All heads of such a model must have attention
/// weights. Gated DeltaNet heads have none and are replaced by softmax heads.
GridRun measured_run(const AlgorithmicTask& task, std::int64_t number,
                     const RecipeOptions& options) {
  GridRun run = learned_run(task, number, options);
  const bool state = run.config.model_settings().heads.find("delta:") != std::string::npos;
  return state ? softmax_run(task, number, options) : run;
}

/// The runs of all tasks for the first seed, then for the next seed, and so on.
std::vector<GridRun> measured_runs(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 3); ++number) {
    for (const AlgorithmicTask& task : tasks_measured(options)) {
      runs.push_back(measured_run(task, number, options));
    }
  }
  return runs;
}

/// Attention measurements of one task on one distribution, for the runs of all seeds.
struct Measured {
  std::string row;  // name of the table row, such as "String Reversal, OOD"
  std::string_view task;
  bool ood = false;
  std::vector<AttentionMeasures> runs;
};

AttentionMeasures measure(const GridRun& run, const std::string& distribution,
                          const RecipeOptions& options) {
  const LoadedRun loaded = load_learned(run, options);
  return measure_attention(*loaded.model, *scored_task(loaded.config, distribution),
                           fresh_samples(measured_samples(options), options));
}

/// Trains the runs that are not finished, and measures all runs in and out of distribution. The
/// result is empty if the training was stopped.
std::vector<Measured> measure_all(const RecipeOptions& options, RecipeResult& result) {
  const std::vector<GridRun> runs = measured_runs(options);
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return {};
  result.runs = run_paths(runs, options, beside_attentionspan());
  const std::vector<AlgorithmicTask> tasks = tasks_measured(options);
  std::vector<Measured> all;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (const bool ood : {false, true}) {
      Measured& measured = all.emplace_back(
          Measured{text(tasks[t].title, ood ? ", OOD" : ", ID"), tasks[t].name, ood, {}});
      for (std::size_t r = t; r < runs.size(); r += tasks.size()) {
        measured.runs.push_back(measure(runs[r], ood ? "ood" : "train", options));
      }
    }
  }
  result.sections.emplace_back(
      "The models",
      html::paragraph(text(learned_model(options), "They are scored at their last step on ",
                           measured_samples(options), " samples of each distribution. ",
                           how_optimized(options))));
  return all;
}

double accuracy(const AttentionMeasures& measures) {
  std::int64_t exact = 0;
  for (const LengthScores& at : measures.lengths) exact += at.exact;
  return static_cast<double>(exact) / static_cast<double>(measures.samples);
}

double partial_accuracy(const AttentionMeasures& measures) {
  std::int64_t asked = 0, right = 0;
  for (const LengthScores& at : measures.lengths) {
    asked += at.asked;
    right += at.right;
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

std::vector<double> each(const Measured& measured, double (*figure)(const AttentionMeasures&)) {
  std::vector<double> values;
  for (const AttentionMeasures& run : measured.runs) values.push_back(figure(run));
  return values;
}

/// A table row with the mean of the values in percent and its 95% interval.
Row mean_row(const std::string& row, const std::string& column, const tasks::Moments& values,
             std::optional<double> paper = {}) {
  Row result{row, column, 100 * values.mean, {}, {}, paper};
  if (const auto interval = tasks::mean_interval(values)) {
    result.low = 100 * interval->low;
    result.high = 100 * interval->high;
  }
  return result;
}

struct PaperScores {
  std::string_view model, task;
  // The paper's attention on the reference tokens, in percent. `right` is the mean over right
  // predictions and `wrong` the mean over wrong predictions. The spreads are the numbers that the
  // paper prints after "±".
  double right, right_spread, wrong, wrong_spread;
};
constexpr PaperScores table3_of_paper[] = {
    {"Llama-3.2-3B-Instruct", "reversal", 4.55, 0.02, 2.36, 0.09},
    {"Llama-3.2-3B-Instruct", "value-assignment", 3.33, 0.03, 1.26, 0.02},
    {"Qwen2.5-1.8B-Instruct", "reversal", 3.07, 0.06, 2.17, 0.05},
    {"Qwen2.5-1.8B-Instruct", "value-assignment", 1.27, 0.03, 1.20, 0.06},
    {"gemma-3-12B", "reversal", 3.97, 0.12, 2.30, 0.03},
    {"gemma-3-12B", "value-assignment", 5.04, 0.12, 4.91, 0.04},
};

RecipeResult table3(const RecipeOptions& options) {
  RecipeResult result;
  for (const Measured& measured : measure_all(options, result)) {
    // Statistics of the attention on the reference tokens, over the runs of all seeds. `all` has
    // one value per sample, `right` one per correctly predicted token, and `wrong` one per wrongly
    // predicted token.
    tasks::Moments all, right, wrong;
    for (const AttentionMeasures& run : measured.runs) {
      all.add(run.attention_score);
      right.add(run.when_right);
      wrong.add(run.when_wrong);
    }
    const auto* const paper =
        measured.ood ? std::ranges::find(table3_of_paper, measured.task, &PaperScores::task)
                     : std::end(table3_of_paper);
    const bool printed = paper != std::end(table3_of_paper);
    const auto figure = [&](double value) { return printed ? std::optional(value) : std::nullopt; };
    const auto number = [&](const std::string& column, double value, bool whole = false) {
      result.rows.push_back({measured.row, column, value});
      result.rows.back().whole = whole;
    };
    result.rows.push_back(mean_row(measured.row, "AttnScore, %", all));
    if (right.count > 0) {
      result.rows.push_back(
          mean_row(measured.row, "right, %", right, figure(printed ? paper->right : 0)));
    }
    if (wrong.count > 0) {
      result.rows.push_back(
          mean_row(measured.row, "wrong, %", wrong, figure(printed ? paper->wrong : 0)));
    }
    if (const auto test = tasks::welch(right, wrong)) {
      number("t", test->t);
      number("degrees of freedom", test->freedom);
      number("p", test->p);
    }
    number("tokens right", static_cast<double>(right.count), true);
    number("tokens wrong", static_cast<double>(wrong.count), true);
  }
  if (result.stopped) return result;
  std::vector<std::vector<std::string>> body;
  for (const PaperScores& p : table3_of_paper) {
    body.push_back({std::string(p.model), std::string(p.task), text(p.right, " ± ", p.right_spread),
                    text(p.wrong, " ± ", p.wrong_spread)});
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "AttnScore is the share of a predicted token's attention rollout on the tokens of the "
          "task's reference. It is averaged over the tokens of a sample and then over samples, and "
          "separately over right and wrong predictions under teacher forcing. Intervals are "
          "Student's 95% intervals. t, degrees of freedom and the two-sided p are those of Welch's "
          "test over tokens. The test treats tokens as independent, although tokens of one sample "
          "are not. A cell is empty if all tokens are right. The paper's figures in the table are "
          "those of its Llama model. Rollout depends on the number of layers, so only the order of "
          "the figures can be compared, not their size."));
  result.sections.emplace_back("The paper's Table 3, fine-tuned models",
                               html::table({"model", "task", "right, %", "wrong, %"}, body));
  return result;
}

struct PaperEntropies {
  double accuracy, mean, deviation, least, greatest;
};
constexpr PaperEntropies paper_id{1.00, 1.80, 0.52, 0.53, 3.65},
    paper_ood{0.18, 1.90, 0.67, 0.57, 4.26}, paper_repaired{0.87, 1.68, 0.79, 0.69, 4.31};

/// Adds table rows with the accuracy and the attention entropies of a model's runs. `paper` points
/// to the paper's results, or is null if the paper has none.
void add_entropies(RecipeResult& result, const Measured& measured, const PaperEntropies* paper,
                   std::int64_t samples) {
  const auto add = [&](const std::string& column, double (*figure)(const AttentionMeasures&),
                       double PaperEntropies::*printed, std::int64_t of = 0) {
    add_row(result, measured.row, column, each(measured, figure),
            paper ? std::optional(paper->*printed) : std::nullopt, of);
  };
  using M = AttentionMeasures;
  add("Accuracy", accuracy, &PaperEntropies::accuracy, samples);
  add(
      "Mean entropy", [](const M& m) { return m.entropy.heads.mean; }, &PaperEntropies::mean);
  add(
      "Std", [](const M& m) { return m.entropy.heads.deviation(); }, &PaperEntropies::deviation);
  add(
      "Min", [](const M& m) { return m.entropy.least; }, &PaperEntropies::least);
  add(
      "Max", [](const M& m) { return m.entropy.greatest; }, &PaperEntropies::greatest);
}

RecipeResult table4(const RecipeOptions& options) {
  RecipeResult result;
  const std::int64_t samples = measured_samples(options);
  for (const Measured& measured : measure_all(options, result)) {
    const PaperEntropies& paper = measured.ood ? paper_ood : paper_id;
    add_entropies(result, measured, measured.task == "addition" ? &paper : nullptr, samples);
  }
  if (result.stopped) return result;
  result.sections.emplace_back(
      "What is counted",
      html::paragraph("Entropy of a head's attention in nats, averaged over all rows of all "
                      "samples, then mean, standard deviation and range over the model's heads. "
                      "Accuracy is the share of right answers under teacher forcing. The paper's "
                      "figures are those of its Llama model with 512 heads on additions of 5 and "
                      "of 60 digits. This table uses the task's own distributions."));
  return result;
}

std::vector<Lineage> table5_runs(const RecipeOptions& options) {
  return lineages({{algorithmic_task("addition")}}, options,
                  [&](const auto& task, std::int64_t number) {
                    const GridRun model = learned_run(task, number, options);
                    return std::vector{model, columns_repair(model, options)};
                  });
}

RecipeResult table5(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Lineage> all = table5_runs(options);
  if (!train_all(all, options, result)) return result;
  const AlgorithmicTask& task = all.front().task;
  struct Setting {
    const char *title, *distribution;
    std::size_t repaired;
    const PaperEntropies* paper;
  };
  const std::int64_t samples = measured_samples(options);
  for (const auto& [title, distribution, repaired, paper] :
       {Setting{"ID", "train", 0, &paper_id}, Setting{"OOD, base", "ood", 0, &paper_ood},
        Setting{"OOD, repaired", "ood", 1, &paper_repaired}}) {
    Measured measured{
        text(task.title, ", ", title), task.name, std::string_view(distribution) == "ood", {}};
    for (const GridRun& run : all.front().of_seeds(repaired)) {
      measured.runs.push_back(measure(run, distribution, options));
    }
    add_entropies(result, measured, paper, samples);
    add_row(result, measured.row, "Partial accuracy", each(measured, partial_accuracy), {});
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("As in Table 4, on ", samples,
               " samples each: accuracy under teacher forcing, and the mean entropy of a head's "
               "rows in nats, as mean, standard deviation and range over heads. The repair trains "
               "only the last column of every head's W_Q and W_K, on samples out of distribution "
               "(attentionspan/sec6.4). The paper's model is Llama-3.2-1B, fine-tuned on additions "
               "of 5 digits and repaired for 60 digits. Ours uses the task's own distributions. ",
               learned_model(options), how_optimized(options))));
  return result;
}

/// Numbers of digits of the additions in the paper's Tables 4 and 5: `learned_digits` in training,
/// `short_digits` and `long_digits` in the scored samples.
constexpr std::string_view learned_digits = "1-5", short_digits = "5", long_digits = "60";

std::vector<Lineage> digits_runs(const RecipeOptions& options) {
  return lineages(
      {{algorithmic_task("addition")}}, options, [&](const auto& task, std::int64_t number) {
        GridRun model =
            learned_run(task, number, options, {{"task.digits", std::string(learned_digits)}});
        model.name += "-5-digits";
        GridRun repair = columns_repair(model, options);
        repair.config.set("task.digits", std::string(long_digits));
        repair.config.set("training.train_on", "train");
        return std::vector{std::move(model), std::move(repair)};
      });
}

RecipeResult digits(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Lineage> all = digits_runs(options);
  if (!train_all(all, options, result)) return result;
  struct Setting {
    std::string_view title, digits;
    std::size_t repaired;
    const PaperEntropies* paper;
  };
  const std::int64_t samples = measured_samples(options);
  for (const auto& [title, count, repaired, paper] :
       {Setting{"5 digits", short_digits, 0, &paper_id},
        Setting{"60 digits, base", long_digits, 0, &paper_ood},
        Setting{"60 digits, repaired", long_digits, 1, &paper_repaired}}) {
    Measured measured{text("Long Addition, ", title), "addition", count == long_digits, {}};
    for (const GridRun& run : all.front().of_seeds(repaired)) {
      const LoadedRun loaded = load_learned(run, options);
      Config config = loaded.config;
      config.set("task.digits", std::string(count));
      measured.runs.push_back(
          measure_attention(*loaded.model, *config.task("train"), fresh_samples(samples, options)));
    }
    add_entropies(result, measured, paper, samples);
    add_row(result, measured.row, "Partial accuracy", each(measured, partial_accuracy), {});
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text("As in Tables 4 and 5, on ", samples,
                           " samples each, at the paper's lengths: training uses sums of 1 to 5 "
                           "digits, sums of 5 and of 60 digits are scored, and the repair trains "
                           "the last column of every head's W_Q and W_K on sums of 60 digits. ",
                           learned_model(options), how_optimized(options))));
  return result;
}

std::map<Scale, std::string> scales() {
  return {{Scale::smoke,
           "five of the models of attentionspan/table6, or of table2: two minutes on 2 cores"},
          {Scale::laptop, "five of the models of attentionspan/table6, or of table2; three seeds"},
          {Scale::paper,
           "five of the models of attentionspan/table6, or of table2, three seeds; for a GPU"}};
}

const RegisterRecipe recipe3{
    {.id = "attentionspan/table3",
     .summary = "attention on the tokens that the answer needs, for right and wrong predictions",
     .scales = scales(),
     .run = table3,
     .runs = measured_runs,
     .takes = {"model", "tasks", "optimizer"}}};

const RegisterRecipe recipe4{{.id = "attentionspan/table4",
                              .summary = "entropy of attention heads, in and out of distribution",
                              .scales = scales(),
                              .run = table4,
                              .runs = measured_runs,
                              .takes = {"model", "tasks", "optimizer"}}};

const RegisterRecipe recipe5{
    {.id = "attentionspan/table5",
     .summary =
         "addition before and after the repair of one column, and entropy of attention heads",
     .scales = {{Scale::smoke, "a model and its repair: a minute on 2 cores"},
                {Scale::laptop,
                 "the model of attentionspan/table6 and its repair, three seeds: five minutes on "
                 "one core"},
                {Scale::paper, "width 512, three seeds; for a GPU"}},
     .run = table5,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(table5_runs(options), options); },
     .takes = {"model", "optimizer"}}};

const RegisterRecipe recipe_digits{
    {.id = "attentionspan/digits",
     .summary =
         "Tables 4 and 5 at the paper's lengths: sums of 5 digits, of 60 digits, and after repair",
     .scales = {{Scale::smoke, "a model and its repair: minutes on 2 cores"},
                {Scale::laptop, "a model and its repair, three seeds: half an hour on one core"},
                {Scale::paper, "width 512, three seeds; for a GPU"}},
     .run = digits,
     .pieces =
         [](const RecipeOptions& options) { return pieces_of(digits_runs(options), options); },
     .takes = {"model", "optimizer"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_attention
