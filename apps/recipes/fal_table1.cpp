#include <algorithm>
#include <iterator>

#include "apps/html/chart.h"
#include "apps/html/svg.h"
#include "apps/recipes/chosen.h"
#include "apps/recipes/fal.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_report.h"

/// First-After-Last, Table 1: the plain model and the FAL model, in and out of the training
/// distribution.
namespace longhand::app::fal_table1 {
namespace {

constexpr std::string_view reuse_from[] = {"fal/figure2"};

std::string name_of(bool fal) { return fal ? "FAL-GPT + RoPE" : "GPT + RoPE"; }

/// The experiments selected by --tasks. The default is all experiments of the scale.
std::vector<Experiment> experiments_of(const RecipeOptions& options) {
  std::vector<Experiment> all{flip_flop_experiment(), cycle_tracing_experiment(options.scale)};
  if (options.scale == Scale::smoke) all.pop_back();
  if (options.tasks.empty()) return all;
  std::vector<Experiment> some;
  for (const Experiment* one : chosen("tasks", options.tasks, std::span<const Experiment>(all))) {
    some.push_back(*one);
  }
  return some;
}

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> all;
  for (const Experiment& e : experiments_of(options)) {
    std::ranges::move(fal_runs(e, options), std::back_inserter(all));
  }
  return all;
}

/// Loads the models of all seeds after their last step: the FAL models if `fal`, otherwise the
/// plain models.
std::vector<LoadedRun> load(const Experiment& e, bool fal, const RecipeOptions& options) {
  std::vector<LoadedRun> loaded;
  for (std::int64_t number = 0; number < fal_seeds(e, fal, options); ++number) {
    loaded.push_back(load_finished(fal_run(e, fal, options, number), options, reuse_from));
  }
  return loaded;
}

/// Scores a model's runs on one distribution of the task. Adds their mean score to the table, where
/// each distribution has a column. Returns the score of each run.
std::vector<double> score(std::span<LoadedRun> runs, const Experiment& e,
                          const Experiment::Column& column, Reading reading, bool fal,
                          const RecipeOptions& options, RecipeResult& result) {
  std::vector<double> values, parts;
  std::int64_t count = 0, part_count = 0;
  for (LoadedRun& run : runs) {
    const auto task = run.config.task(column.distribution);
    // The seed differs from that of evaluations during training, so these samples are new.
    const tasks::Tally tally = evaluate(*run.model, *task,
                                        {.samples = run.config.training().evaluate_samples,
                                         .seed = options.seed + 1000,
                                         .reading = reading});
    values.push_back(tally.at(e.metric).mean());
    count = tally.at(e.metric).count;
    if (e.part_metric.empty()) continue;
    parts.push_back(tally.at(e.part_metric).mean());
    part_count = tally.at(e.part_metric).count;
  }
  const bool forced = e.decoded && reading == Reading::forced;
  const double paper = fal ? column.paper_fal : column.paper_baseline;
  add_row(result, name_of(fal), column.title + (forced ? ", forced" : ""), values,
          forced ? std::nullopt : std::optional(paper), count);
  if (!parts.empty()) {
    add_row(result, name_of(fal), text(column.title, ", ", e.part_metric), parts, {}, part_count);
  }
  return values;
}

/// Adds the rows of an experiment's two models.
void compare(const Experiment& e, const RecipeOptions& options, RecipeResult& result) {
  html::LineChart chart{
      .x_label = "step", .y_label = "loss (" + e.name + ")", .series = {}, .log_y = true};
  std::vector<std::string> columns{"model", "seed"};
  for (const Experiment::Column& column : e.columns) columns.push_back(column.title);
  std::vector<std::vector<std::string>> each;  // a table with the scores of each run
  for (const bool fal : {false, true}) {
    std::vector<LoadedRun> runs = load(e, fal, options);
    const std::size_t first_row = each.size();
    for (const LoadedRun& run : runs)
      each.push_back({name_of(fal), text(run.config.training().seed)});
    for (const Experiment::Column& column : e.columns) {
      std::vector<double> values;
      if (e.decoded) values = score(runs, e, column, Reading::decoded, fal, options, result);
      const auto forced = score(runs, e, column, Reading::forced, fal, options, result);
      if (!e.decoded) values = forced;
      for (std::size_t i = 0; i < values.size(); ++i) {
        each[first_row + i].push_back(html::decimals(values[i], 3));
      }
    }
    const RunFolder first(run_path(fal_run(e, fal, options), options, reuse_from));
    chart.series.push_back(curve(name_of(fal), first.metrics(), "loss"));
  }
  const bool one = each.size() == 2;
  result.sections.emplace_back(
      "Training on " + e.name,
      html::figure(line_chart(chart), one ? "Training loss" : "Training loss of the first seed"));
  if (!one) result.sections.emplace_back("Each run on " + e.name, html::table(columns, each));
}

void report(const RecipeOptions& options, RecipeResult& result) {
  std::string seeds;
  for (const Experiment& e : experiments_of(options)) {
    compare(e, options, result);
    const std::int64_t plain = fal_seeds(e, false, options), fal = fal_seeds(e, true, options);
    seeds += text(seeds.empty() ? "" : " ", "Of ", e.name, ": ", how_intervals(fal),
                  plain == fal ? "" : text(" Of the plain model there are ", plain, "."));
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "Columns have the paper's names at every scale; \"len 1024\" is twice the training "
          "length. Flip-Flop: the share of sequences with all reads right under teacher forcing, "
          "and the share of right reads. The loss is that of the bits of reads. The paper does not "
          "state which of the two shares it prints. Cycle Tracing: the share of right transitions "
          "before the first mistake, when the model continues from its own predictions (decoding), "
          "and next to it the same under teacher forcing. " +
          seeds));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "fal/table1",
     .summary = "GPT against FAL-GPT on Flip-Flop and Cycle Tracing, in and out of distribution",
     .scales = {{Scale::smoke, "Flip-Flop only, 64 instructions, 2 layers: a minute on 2 cores"},
                {Scale::laptop,
                 "the paper's Flip-Flop model and lengths, ten seeds of the FAL model, and a small "
                 "Cycle Tracing, three: an hour and three quarters on one core"},
                {Scale::extended,
                 "the paper's own Flip-Flop, one seed (days on two cores), and Cycle Tracing in "
                 "characters with a wider FAL head, three seeds"},
                {Scale::paper, "the paper's sizes, three seeds of GPT on Flip-Flop; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = reuse_from,
     .takes = {"tasks"}})};

}  // namespace
}  // namespace longhand::app::fal_table1
