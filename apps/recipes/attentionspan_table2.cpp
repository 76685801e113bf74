#include <algorithm>
#include <array>

#include "apps/html/chart.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/run_report.h"
#include "core/error.h"

/// AttentionSpan, Table 2: a pretrained model fine-tuned on each task, scored on samples of the
/// trained lengths and on longer ones.
namespace longhand::app::attentionspan_table2 {
namespace {

namespace fs = std::filesystem;

/// A model that the paper fine-tunes. It is recognized by its number of layers and its width.
struct PaperModel {
  std::string_view name;
  std::int64_t layers, width;
};
constexpr PaperModel paper_models[] = {{"Llama-3.2-1B-Instruct", 16, 2048},
                                       {"Qwen2.5-1.5B-Instruct", 28, 1536},
                                       {"gemma-3-1b-it", 26, 1152}};

/// The paper's result for a model on a task. Null if the paper's table has none.
const TunedFigure* figure_of(const Config& model, std::string_view task) {
  const nn::DecoderConfig decoder = model.model_settings().decoder;
  for (const PaperModel& m : paper_models) {
    if (decoder.layers != m.layers || decoder.width != m.width) continue;
    for (const TunedFigure& figure : tuned_figures()) {
      if (figure.model == m.name && figure.task == task) return &figure;
    }
  }
  return nullptr;
}

std::int64_t scored_samples(Scale scale) {
  constexpr std::array<std::int64_t, 3> samples{20, 200, 1000};
  return samples[static_cast<std::size_t>(scale)];
}

RecipeResult run(const RecipeOptions& options) {
  LONGHAND_CHECK(!options.model.empty(),
                 "attentionspan/table2: expected a pretrained model (--model RUN); `longhand "
                 "import DIR --out RUN` converts the files of a model to a run");
  RecipeResult result;
  std::vector<GridRun> runs;
  const std::int64_t seeds = seeds_of(options, 1, 3, 1);
  const std::vector<AlgorithmicTask> tasks = chosen_tasks(options, algorithmic_tasks());
  for (const AlgorithmicTask& task : tasks) {
    for (std::int64_t n = 0; n < seeds; ++n) runs.push_back(tuned_run(task, n, options));
  }
  result.stopped = !train_runs(runs, options);
  if (result.stopped) return result;

  const std::int64_t samples = scored_samples(options.scale);
  html::LineChart chart{.x_label = "step", .y_label = "loss", .series = {}, .log_y = true};
  auto tuned = runs.begin();
  for (const AlgorithmicTask& task : tasks) {
    const TunedFigure* const paper = figure_of(tuned->config, task.title);
    TaskScores id, ood;
    for (std::int64_t n = 0; n < seeds; ++n, ++tuned) {
      id.add(score_task(*tuned, "train", options, samples, false));
      ood.add(score_task(*tuned, "ood", options, samples, false));
      if (n == 0) {
        const fs::path path = options.out / tuned->name;
        chart.series.push_back(curve(std::string(task.title), RunFolder(path).metrics(), "loss"));
      }
    }
    const auto figure = [&](double TunedFigure::*part) {
      return paper ? std::optional(paper->*part) : std::nullopt;
    };
    add_percent(result, task, "ID Acc.", id.exact, figure(&TunedFigure::id), id.samples);
    add_percent(result, task, "OOD Acc.", ood.exact, figure(&TunedFigure::ood), ood.samples);
    add_percent(result, task, "OOD Partial Acc.", ood.partial, figure(&TunedFigure::partial),
                ood.tokens);
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text(
          "All figures are percent, on ", samples,
          " samples of each distribution under teacher forcing: the share of answers with every "
          "token right, including the end; in the last column the share of right tokens. ",
          how_intervals(seeds),
          " Tokens of one answer are correlated, so Wilson's interval is too narrow for the last "
          "column.")) +
          html::paragraph(
              how_optimized(options) +
              " Batch size 4, a constant rate and no clipping, as in the paper. Its 1,500 steps "
              "and rate of 5e-6 are used at the paper scale; the laptop scale has 300 steps at "
              "1e-4. Instruction and examples are longhand's own, because the paper prints none."));
  result.sections.emplace_back("Training", html::figure(line_chart(chart), "Loss, the first seed"));
  result.sections.emplace_back("The paper's Table 2", tuned_table());
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe{
    {.id = "attentionspan/table2",
     .summary =
         "a pretrained model fine-tuned on six algorithmic tasks, and longer samples of each",
     .scales = {{Scale::smoke,
                 "20 steps per task; estimated ten minutes on 2 cores for 135M parameters"},
                {Scale::laptop,
                 "300 steps per task at a higher rate, three seeds: estimated two hours on one "
                 "core for 135M parameters"},
                {Scale::paper, "1,500 steps per task, batch size 4, rate 5e-6; for a GPU"}},
     .run = run,
     .takes = {"model", "tasks", "optimizer"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_table2
