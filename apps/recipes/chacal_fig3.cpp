#include "apps/html/chart.h"
#include "apps/recipes/chacal.h"

/// ChaCAL, Figure 3: accuracy on chains of references during training. Curves show the mean and the
/// range over all runs.
namespace longhand::app::chacal_fig3 {
namespace {

constexpr std::string_view reuse_from[] = {"chacal/table1"};

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  RecipeOptions several = options;
  several.seeds = seeds_of(options, 2, 3, 4);
  return toy_runs(several);
}

void report(const RecipeOptions& options, RecipeResult& result) {
  result.bounds = Bounds::seeds;
  const std::vector<GridRun> runs = runs_of(options);
  html::LineChart chart{.x_label = "step", .y_label = "accuracy", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  const std::vector<ToyModel> models = toy_models(options.scale);
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<std::filesystem::path> paths;
    for (std::size_t r = m; r < runs.size(); r += models.size()) {
      paths.push_back(run_path(runs[r], options, reuse_from));
    }
    const Curve curve = curve_over(paths, "train/choices");
    html::Series series{.name = models[m].name(), .points = {}};
    const std::size_t count = curve.steps.size();
    for (std::size_t i = 0; i < count; ++i) {
      series.points.push_back({curve.steps[i], curve.mean[i], curve.least[i], curve.most[i]});
      // The table shows only four evenly spaced steps.
      if ((i + 1) * 4 % count >= 4) continue;
      result.rows.push_back(
          {models[m].name(), text("step ", static_cast<std::int64_t>(curve.steps[i])),
           curve.mean[i], curve.least[i], curve.most[i],
           i + 1 == count ? std::optional(models[m].paper_accuracy) : std::nullopt});
    }
    chart.series.push_back(std::move(series));
  }
  result.sections.emplace_back(
      "Accuracy during training",
      html::figure(line_chart(chart),
                   text("Mean of ", runs.size() / models.size(),
                        " runs; the band ranges from the lowest to the highest")) +
          html::paragraph(
              "In the table, too, the interval is the range from the lowest to the highest run. "
              "The paper's figure prints no numbers; its Table 1 has those of the last column."));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/fig3",
     .summary = "accuracy on chains during training, several seeds, with the band of all runs",
     .scales = {{Scale::smoke, "the models of chacal/table1, two seeds; existing runs are reused"},
                {Scale::laptop, "the same with all six models, three seeds"},
                {Scale::paper, "the paper's sizes, four seeds; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = reuse_from})};

}  // namespace
}  // namespace longhand::app::chacal_fig3
