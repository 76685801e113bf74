#include <array>

#include "apps/html/chart.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/run_report.h"

/// Recipes of AttentionSpan's Table 6, and of its Table 2 with small models trained from scratch
/// instead of fine-tuned models.
namespace longhand::app::attentionspan_scratch {
namespace {

std::int64_t scored_samples(Scale scale) {
  constexpr std::array<std::int64_t, 3> samples{200, 1000, 10'000};
  return samples[static_cast<std::size_t>(scale)];
}

/// The runs of all tasks and seeds.
std::vector<GridRun> scratch_runs(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 3); ++number) {
    for (const AlgorithmicTask& task : chosen_tasks(options, algorithmic_tasks())) {
      runs.push_back(scratch_run(task, number, options));
    }
  }
  return runs;
}

/// The step of the first evaluation with more than 99% of the answers in distribution right; 0 if
/// there is none.
std::int64_t learned_at(const RunFolder& run) {
  for (const Json& line : run.metrics()) {
    const Json* const exact = line.find("train/sequences");
    if (exact && exact->number() > 0.99) return line["step"].integer();
  }
  return 0;
}

/// The step at which the paper's rule (section 4) would stop the training: after ten evaluations in
/// a row with over 99% accuracy in distribution and over 10% out of distribution. 0 if the rule
/// would never stop it.
std::int64_t stopped_at(const RunFolder& run) {
  int in_a_row = 0;
  for (const Json& line : run.metrics()) {
    const Json *const id = line.find("train/sequences"), *const ood = line.find("ood/sequences");
    if (!id || !ood) continue;
    in_a_row = id->number() > 0.99 && ood->number() > 0.10 ? in_a_row + 1 : 0;
    if (in_a_row == 10) return line["step"].integer();
  }
  return 0;
}

/// A text for the results page, which explains the numbers in the page's table and describes the
/// trained models. There are `seeds` runs per task, and each is scored on `samples` samples.
std::string how_counted(std::int64_t samples, std::int64_t seeds, const RecipeOptions& options) {
  return html::paragraph(text(
             "All figures are percent, on ", samples,
             " samples of each distribution that evaluations during training do not use. Accuracy "
             "is the share of answers with every token right under teacher forcing, including the "
             "end of the answer if the task has one. Decoded accuracy is the same share when the "
             "model reads its own answer. Partial accuracy is the share of right tokens under "
             "teacher forcing. ",
             how_intervals(seeds),
             " Tokens of one answer are correlated, so Wilson's interval is too narrow for partial "
             "accuracy.")) +
         html::paragraph(
             "One small Llama-like model with rotary positions is trained for each task, with the "
             "task's characters as tokens. Models train on FFML with 1 to 10 commands and on "
             "Value Assignment with 2 to 5 pairs, never more than the paper's, and are scored on "
             "the paper's 10 commands and 5 pairs. All heads are softmax heads, with two "
             "exceptions. Value Assignment uses ChaCAL heads, because softmax heads need several "
             "times as many steps to find the table. From the laptop scale on, half of FFML's "
             "heads are Gated DeltaNet heads, because softmax heads miss some of the parities of "
             "flips. The paper's model of Table 6 is Llama-3.2-1B with random weights, trained at "
             "a constant rate of 5e-6 for 1,500 steps with batch size 4. " +
             how_optimized(options) +
             " Rate, schedule and batch size are chosen by the recipe; see the configurations.");
}

/// Makes a table with one row per task. `columns` adds the columns of a task, given its scores in
/// distribution and out of distribution.
template <class Columns>
RecipeResult scratch_table(const RecipeOptions& options, const Columns& columns) {
  RecipeResult result;
  const std::vector<GridRun> runs = scratch_runs(options);
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;

  const std::vector<AlgorithmicTask> tasks = chosen_tasks(options, algorithmic_tasks());
  const std::int64_t samples = scored_samples(options.scale);
  html::LineChart chart{
      .x_label = "step", .y_label = "answers right, in distribution", .series = {}};
  std::vector<std::vector<std::string>> learned;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    TaskScores id, ood;
    for (std::size_t r = t; r < runs.size(); r += tasks.size()) {
      id.add(score_task(runs[r], "train", options, samples, true));
      ood.add(score_task(runs[r], "ood", options, samples, true));
      const RunFolder run(run_path(runs[r], options, beside_attentionspan()));
      const auto step = [](std::int64_t at) {
        return at == 0 ? std::string("not reached") : text("step ", at);
      };
      learned.push_back({runs[r].name, step(learned_at(run)), step(stopped_at(run))});
      if (r == t) {
        chart.series.push_back(
            curve(std::string(tasks[t].title), run.metrics(), "train/sequences"));
      }
    }
    columns(result, tasks[t], id, ood);
  }
  result.sections.emplace_back("What is counted",
                               how_counted(samples, std::ssize(runs) / std::ssize(tasks), options));
  result.sections.emplace_back(
      "When tasks were learned",
      html::paragraph("The first evaluation during training with more than 99% right answers in "
                      "distribution (teacher forcing). Every run continues to its last step and is "
                      "scored there. The other column is the step at which the paper's rule "
                      "(section 4) would have stopped: ten evaluations in a row with more than 99% "
                      "in distribution and more than 10% out of distribution.") +
          html::table({"run", "over 99%", "the paper's rule"}, learned) +
          html::figure(line_chart(chart), "Accuracy in distribution, the first seed"));
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

RecipeResult table6(const RecipeOptions& options) {
  return scratch_table(options, [](RecipeResult& result, const AlgorithmicTask& task,
                                   const TaskScores& id, const TaskScores& ood) {
    add_percent(result, task, "ID Acc.", id.exact, task.scratch_id, id.samples);
    add_percent(result, task, "OOD Acc.", ood.exact, task.scratch_ood, ood.samples);
    add_percent(result, task, "ID decoded", id.decoded, {}, id.samples);
    add_percent(result, task, "OOD decoded", ood.decoded, {}, ood.samples);
    add_percent(result, task, "ID partial", id.partial, {}, id.tokens);
    add_percent(result, task, "OOD partial", ood.partial, {}, ood.tokens);
  });
}

RecipeResult table2_scratch(const RecipeOptions& options) {
  RecipeResult result = scratch_table(options, [](RecipeResult& rows, const AlgorithmicTask& task,
                                                  const TaskScores& id, const TaskScores& ood) {
    add_percent(rows, task, "ID Acc.", id.exact, {}, id.samples);
    add_percent(rows, task, "OOD Acc.", ood.exact, {}, ood.samples);
    add_percent(rows, task, "OOD Partial Acc.", ood.partial, {}, ood.tokens);
  });
  if (!result.stopped) {
    result.sections.emplace_back("The paper's Table 2, fine-tuned models", tuned_table());
  }
  return result;
}

const RegisterRecipe recipe6{
    {.id = "attentionspan/table6",
     .summary = "six algorithmic tasks learned from scratch, and longer samples of each",
     .scales =
         {{Scale::smoke,
           "2 or 3 layers of width 64: three minutes on 2 cores; too short for three of the tasks"},
          {Scale::laptop, "2 or 3 layers of width 64 or 96, three seeds: an hour on one core"},
          {Scale::paper, "8 layers of width 512, three seeds; for a GPU"}},
     .run = table6,
     .runs = scratch_runs,
     .takes = {"optimizer", "tasks"}}};

const RegisterRecipe recipe2{
    {.id = "attentionspan/table2-scratch",
     .summary = "the study of Table 2 on small models trained from scratch",
     .scales = {{Scale::smoke, "the models of attentionspan/table6"},
                {Scale::laptop, "the models of attentionspan/table6"},
                {Scale::paper, "the models of attentionspan/table6; for a GPU"}},
     .run = table2_scratch,
     .runs = scratch_runs,
     .takes = {"optimizer", "tasks"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_scratch
