#include <algorithm>
#include <bit>

#include "apps/html/chart.h"
#include "apps/recipes/chacal.h"

/// ChaCAL, Theorem 1: the longest chain of references that a model with standard layers can follow,
/// depending on the number of layers.
namespace longhand::app::chacal_theorem1 {
namespace {

/// The number of layers that Theorem 1 requires to follow `depth` references: ceil(log2(depth +
/// 1)).
std::int64_t layers_needed(std::int64_t depth) {
  return std::bit_width(static_cast<std::uint64_t>(depth));
}

/// The maximum number of layers of the trained models. At the laptop scale (4 layers) and the paper
/// scale (5 layers), this is the number that Theorem 1 requires for the deepest chain. At the smoke
/// scale, the theorem requires 3 layers, but no trained model has more than 2.
std::int64_t most_layers(Scale scale) {
  return scale == Scale::smoke ? 2 : scale == Scale::laptop ? 4 : 5;
}
std::int64_t blocks_of(Scale scale) {
  return scale == Scale::smoke ? 8 : scale == Scale::laptop ? 16 : 32;
}

GridRun run_of(const ToyModel& model, std::int64_t number, const RecipeOptions& options) {
  Settings more{{"task.blocks", std::to_string(blocks_of(options.scale))},
                {"task.size", "4"},
                {"task.score", "depths"}};
  return toy_run(model, number, options, more);
}

std::vector<ToyModel> models_of(Scale scale) {
  std::vector<ToyModel> models;
  for (std::int64_t layers = 1; layers <= most_layers(scale); ++layers) {
    models.push_back({false, layers});
  }
  models.push_back({true, 1});
  return models;
}

std::int64_t seeds(const RecipeOptions& options) { return seeds_of(options, 1, 3, 4); }

/// The runs of all models for the first seed, then for the next seed, and so on.
std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const ToyModel& model : models_of(options.scale)) {
      runs.push_back(run_of(model, number, options));
    }
  }
  return runs;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  const std::vector<GridRun> runs = runs_of(options);
  const std::vector<ToyModel> models = models_of(options.scale);
  const std::int64_t deepest = blocks_of(options.scale) - 1;
  html::LineChart chart{.x_label = "references followed", .y_label = "accuracy", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  std::vector<std::vector<ToyScore>> scores(models.size());  // indexed as scores[model][seed]
  for (std::size_t r = 0; r < runs.size(); ++r) {
    scores[r % models.size()].push_back(score_toy(runs[r], options));
  }
  for (std::size_t m = 0; m < models.size(); ++m) {
    chart.series.push_back({.name = models[m].name(), .points = {}, .dashed = models[m].chacal});
  }
  for (std::int64_t depth = 1; depth <= deepest; ++depth) {
    const std::string name = text("depth ", depth);
    result.rows.push_back(
        {name, "layers by the bound", static_cast<double>(layers_needed(depth)), {}, {}, {}});
    for (std::size_t m = 0; m < models.size(); ++m) {
      std::vector<double> means;
      for (const ToyScore& score : scores[m]) means.push_back(score.tally.at(name).mean());
      const std::int64_t count = scores[m].front().tally.at(name).count;
      add_row(result, name, models[m].name(), means, {}, count);
      const auto [least, most] = std::ranges::minmax(means);
      html::Point point{.x = static_cast<double>(depth), .y = mean_over(means).mean};
      if (means.size() > 1) {
        point.low = least;
        point.high = most;
      }
      chart.series[m].points.push_back(point);
    }
  }
  result.sections.emplace_back(
      "Accuracy by depth",
      html::figure(line_chart(chart),
                   text("Share of right choices at each depth",
                        seeds(options) == 1 ? ""
                                            : ": the mean over seeds, from the least to the "
                                              "greatest")) +
          html::paragraph(how_intervals(seeds(options))) +
          html::paragraph(
              "The theorem: to follow d references a transformer needs ceil(log2(d + 1)) layers, "
              "if in each layer a token can read only tokens that it knows of. The paper states "
              "the theorem but measures no depth separately. Guessing is right one time in four. "
              "For the values of the first block it is right in 0.53 of cases, because four values "
              "are drawn from four and the most frequent one is that often right. At the greatest "
              "depth all answers are such values, at the depth before half of them, and so on. A "
              "model above chance beyond its bound has found what the assumption excludes: with "
              "several heads it reads whole blocks at once and composes them in its feed "
              "forward."));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/theorem1",
     .summary = "accuracy at each chain depth against the number of layers that Theorem 1 requires",
     .scales = {{Scale::smoke, "depths 1 to 7, one and two layers, and ChaCAL"},
                {Scale::laptop,
                 "depths 1 to 15, one to four layers, and ChaCAL, three seeds: 20 minutes on one "
                 "core"},
                {Scale::paper, "depths 1 to 31, one to five layers, the paper's size; for a GPU"}},
     .runs = runs_of,
     .report = report})};

}  // namespace
}  // namespace longhand::app::chacal_theorem1
