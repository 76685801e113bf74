#include "apps/html/chart.h"
#include "apps/recipes/fal.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_report.h"
#include "apps/run/training.h"

/// First-After-Last, Table 1: both models, in and out of the training distribution.
namespace longhand::app {
namespace {

Row score(LoadedRun& run, const Experiment& e, const Experiment::Column& column, Reading reading,
          std::uint64_t seed) {
  const auto task = run.config.task(column.distribution);
  const tasks::Tally tally =
      evaluate(*run.model, *task,
               {.samples = run.config.integer("training.evaluate_samples", 1, 1 << 24),
                .seed = seed,
                .reading = reading});
  const tasks::Metric& metric = tally.at(e.metric);
  const tasks::Interval interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
  return {"", column.title, metric.mean(), interval.low, interval.high};
}

/// Trains both models of an experiment, or goes on with them, and adds their rows.
bool compare(const Experiment& e, const RecipeOptions& options, RecipeResult& result) {
  html::LineChart chart{
      .x_label = "step", .y_label = "loss (" + e.task + ")", .series = {}, .log_y = true};
  std::string configuration;
  for (const bool fal : {false, true}) {
    const std::string name = fal ? "FAL-GPT + RoPE" : "GPT + RoPE";
    const auto path = folder_of(e, fal, options.out);
    RunFolder folder = open_or_create(path, config_of(e, fal, options));
    const TrainingResult trained = train(folder, options.manner);
    if (!trained.finished) return false;

    // The samples are other ones than those of the evaluations during training.
    LoadedRun run = load_run(path, trained.step);
    for (const Experiment::Column& column : e.columns) {
      const Reading reading = e.decoded ? Reading::decoded : Reading::forced;
      Row row = score(run, e, column, reading, options.seed + 1);
      row.row = name;
      row.paper = fal ? column.paper_fal : column.paper_baseline;
      result.rows.push_back(row);
      if (!e.decoded) continue;
      row = score(run, e, column, Reading::forced, options.seed + 1);
      row.row = name;
      row.column += ", forced";
      result.rows.push_back(row);
    }
    chart.series.push_back(curve(name, folder.metrics(), "loss"));
    configuration += "# " + path.filename().string() + "\n" + folder.config().ini() + "\n";
  }
  result.sections.emplace_back(
      "Training on " + e.task,
      html::figure(line_chart(chart), "Training loss") + html::code(configuration));
  return true;
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  result.stopped = !compare(flip_flop_experiment(options.scale), options, result);
  if (!result.stopped && options.scale != Scale::smoke) {
    result.stopped = !compare(cycle_tracing_experiment(options.scale), options, result);
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "Columns have the paper's names at every scale; \"len 1024\" is twice the training "
          "length. Flip-Flop: the share of sequences whose reads are all right, every token of the "
          "sample given (teacher forcing); the loss is on the bits of reads. Cycle Tracing: "
          "transitions, "
          "counted while everything before was right, the model going on from what it said itself "
          "(decoding); beside it the same under teacher forcing. Intervals are Wilson's, 95%."));
  return result;
}

const RegisterRecipe recipe{
    {.id = "fal/table1",
     .summary = "GPT against FAL-GPT on Flip-Flop and Cycle Tracing, in and out of distribution",
     .scales = {{Scale::smoke, "Flip-Flop only, 64 instructions, 2 layers: a minute on 2 cores"},
                {Scale::laptop, "the paper's Flip-Flop model and lengths, a small Cycle Tracing"},
                {Scale::paper, "the paper's sizes; for a GPU"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app
