#include "apps/html/chart.h"
#include "apps/recipes/chacal.h"
#include "apps/run/run_report.h"

/// ChaCAL, Table 1: standard transformers of one to five layers and one ChaCAL layer, trained on
/// chains of references.
namespace longhand::app::chacal_table1 {
namespace {

constexpr std::string_view reuse_from[] = {"chacal/fig3"};

void report(const RecipeOptions& options, RecipeResult& result) {
  const std::vector<GridRun> runs = toy_runs(options);
  html::LineChart chart{.x_label = "step", .y_label = "loss", .series = {}, .log_y = true};
  const std::vector<ToyModel> models = toy_models(options.scale);
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<double> accuracy, loss;
    std::int64_t parameters = 0, choices = 0;
    for (std::size_t r = m; r < runs.size(); r += models.size()) {
      const ToyScore score = score_toy(runs[r], options, reuse_from);
      accuracy.push_back(score.accuracy());
      loss.push_back(score.loss);
      parameters = score.parameters;
      choices = score.tally.at("choices").count;
    }
    const RunFolder first(run_path(runs[m], options, reuse_from));
    chart.series.push_back(curve(models[m].name(), first.metrics(), "loss"));
    const std::string name = models[m].name();
    add_row(result, name, "accuracy", accuracy, models[m].paper_accuracy, choices);
    add_row(result, name, "loss", loss, models[m].paper_loss);
    static constexpr double sizes[] = {3.3, 6.4, 9.6, 12.7, 15.9};
    result.rows.push_back({name,
                           "size, million",
                           static_cast<double>(parameters) / 1e6,
                           {},
                           {},
                           sizes[static_cast<std::size_t>(models[m].layers - 1)]});
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "Accuracy is the share of right choices: at each token the block's own element and every "
          "further element of its chain, each one of eight. Loss is the mean negative "
          "log-likelihood of these choices. Both use new samples. Samples have 128 tokens, or 64 "
          "at the smoke scale. A standard layer that knows everything the paper's theorem allows "
          "reaches 32.4% at 128 tokens and 49.0% at 64. With one run per model the interval is "
          "Wilson's over choices, which is too narrow, because choices of one sequence are "
          "correlated and other seeds are not included. With several runs it is Student's over "
          "runs."));
  result.sections.emplace_back("Training",
                               html::figure(line_chart(chart), "Training loss of the first seed"));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/table1",
     .summary = "one ChaCAL layer against one to five standard layers on chains of references",
     .scales =
         {{Scale::smoke, "one layer of each, 64 tokens, width 64: some minutes on 2 cores"},
          {Scale::laptop,
           "all six models at width 64, 128 tokens, three seeds: an hour on one core"},
          {Scale::extended,
           "all six models at width 128 with all of the paper's samples, three seeds: days on "
           "two cores"},
          {Scale::paper, "width 512, 24k steps with batch size 128, four seeds; for a GPU"}},
     .runs = toy_runs,
     .report = report,
     .reuse_from = reuse_from})};

}  // namespace
}  // namespace longhand::app::chacal_table1
