#include "apps/recipes/hinting.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "apps/html/chart.h"
#include "core/error.h"

namespace longhand::app {
namespace {

/// The number of samples that a scale's training sets have for each million samples of the paper's
/// training sets. The paper's training draws 100,000 batches of 1024 samples, which is 64% of its
/// largest set (160 million samples). At every scale, training draws 64% of the scale's largest
/// set.
std::int64_t million(Scale scale) {
  constexpr std::array<std::int64_t, 4> samples{1000, 25'000, 1'000'000, 1'000'000};
  return samples[static_cast<std::size_t>(scale)];
}

/// Settings of the models and their training at each scale. The paper's models have GELU, no
/// positions, attention before the feed-forward layer, and an output layer with a bias. Their
/// warm-up is linear and takes ten epochs. The extended scale has the paper's number of samples.
/// The smoke and laptop scales have at most a fortieth of this number, no bias in the output layer,
/// and a cosine warm-up.
constexpr ScaledSetting settings[] = {
    {"model.positions", "none", "none", "none"},
    {"model.order", "sequential", "sequential", "sequential"},
    {"model.output_bias", "0", "0", "1", "1"},
    {"model.width", "32", "64", "1024"},
    {"model.inner", "64", "128", "2048"},
    {"model.heads", "softmax:2", "softmax:4", "softmax:16"},
    {"training.schedule", "one_cycle", "one_cycle", "cosine", "cosine"},
    {"training.steps", "1600", "40000", "100000", "400000"},
    {"training.batch", "64", "64", "1024", "256"},
    {"training.rate", "4e-3", "2e-3", "1e-5"},
    {"training.warm_up", "100", "200", "", "2000"},
    {"training.checkpoint_every", "", "5000", "2000", "5000"},
    {"training.evaluate_samples", "50", "200", "1000"}};

}  // namespace

std::string HintingModel::id() const {
  std::string id = task + "-" + hint + (tempered ? "-tempered-" : "-standard-") + set;
  if (layers != 2) id += text("-", layers, "-layers");
  if (repetitions) id += "-repetitions";
  if (copies) id += "-copies";
  if (positions != "none") id += "-" + positions;
  return id;
}

std::int64_t hinting_seeds(const RecipeOptions& options) { return seeds_of(options, 1, 3, 1); }

GridRun hinting_run(const HintingModel& model, const RecipeOptions& options, std::int64_t number) {
  Config config = recipe_config(model.task);
  set_all(config, settings, options.scale);
  const std::int64_t set = std::stoll(model.set) * million(options.scale);
  config.set("training.set", std::to_string(set));
  if (options.scale == Scale::paper) {
    // The warm-up takes ten epochs, as in the paper, but at most a tenth of all steps. Ten epochs
    // of the larger sets would be longer than the whole training.
    const std::int64_t steps = 100'000;
    config.set("training.warm_up", std::to_string(std::min(10 * set / 1024, steps / 10)));
  }
  config.set("task.hint", model.hint);
  if (model.repetitions) config.set("task.repetition", "0.1");
  if (model.copies) config.set("task.successor", "copy");
  if (model.positions != "none") {
    config.set("model.positions", model.positions);
    config.set("model.longest", "512");  // the sequence length used in the paper
  }
  config.set("model.layers", std::to_string(model.layers));
  if (model.tempered) config.set("model.temper", "position");
  const std::uint64_t seed = set_seed(config, options, number);
  set_all(config, options.settings);
  return {number == 0 ? model.id() : text(model.id(), "-seed-", seed), std::move(config)};
}

std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < hinting_seeds(options); ++number) {
    for (const HintingModel& model : models) runs.push_back(hinting_run(model, options, number));
  }
  return runs;
}

HintingTests hinting_tests(Scale scale) {
  static const std::array<HintingTests, 4> tests{{{100, {6, 12}, "2..20:3", "10,20"},
                                                  {500, {50, 100}, "10..100:10", "20..60:10"},
                                                  {100'000, {50, 100}, "5..100:5", "20..100:10"},
                                                  {500, {50, 100}, "10..100:10", "20..100:20"}}};
  return tests[static_cast<std::size_t>(scale)];
}

std::uint64_t hinting_test_seed(const RecipeOptions& options) { return options.seed + 1000; }

std::span<const std::string_view> hinting_recipes() {
  static constexpr std::string_view recipes[] = {
      "hinting/table1",   "hinting/table2",  "hinting/fig3.2",   "hinting/fig3.3",
      "hinting/fig3.5",   "hinting/fig3.6",  "hinting/fig3.8",   "hinting/fig3.11",
      "hinting/fig4.12",  "hinting/fig4.15", "hinting/readings", "hinting/tempered",
      "hinting/positions"};
  return recipes;
}

LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options,
                       std::int64_t number) {
  // The last checkpoint is used. The best checkpoint is not, because it was selected by its scores
  // on long samples, on which the models are tested.
  return load_finished(hinting_run(model, options, number), options, hinting_recipes());
}

ScoredRuns score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                         const RecipeOptions& options) {
  ScoredRuns runs;
  for (std::int64_t number = 0; number < hinting_seeds(options); ++number) {
    const LoadedRun loaded = load_hinting(model, options, number);
    auto points = sweep_points(loaded.config, axes);
    // All runs are tested on the same samples, and evaluations during training do not use these
    // samples.
    sweep(*loaded.model, points,
          {.samples = hinting_tests(options.scale).samples,
           .seed = hinting_test_seed(options),
           .reading = Reading::decoded});
    runs.push_back(std::move(points));
  }
  return runs;
}

void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               const ScoredRuns& runs, std::size_t point, std::optional<double> paper) {
  std::vector<double> shares;
  for (const auto& points : runs) shares.push_back(points[point].tally.at("sequences").mean());
  const std::int64_t samples = runs[0][point].tally.at("sequences").count;
  add_row(result, row, column, shares, paper, samples);
}

std::string model_chart(const std::vector<std::pair<std::string, ScoredRuns>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric) {
  html::LineChart chart{.x_label = axes[0].option, .y_label = std::string(metric), .series = {}};
  chart.y_low = 0;
  for (const auto& [name, runs] : models) {
    if (runs[0].front().tally.at(metric).is_share) chart.y_high = 1;
    auto mean = sweep_series_over(name, runs, axes, metric);
    // If two options are swept, axes[0] is the x axis of the chart. A model then has one series for
    // each value of the second option, axes[1]. The colours of the series show this value, and the
    // dashes show the model.
    for (std::size_t s = 0; mean.size() > 1 && s < mean.size(); ++s) {
      mean[s].hue = s;
      mean[s].dashed = !chart.series.empty();
    }
    std::ranges::move(mean, std::back_inserter(chart.series));
  }
  return html::line_chart(chart);
}

std::string how_intervals(const RecipeOptions& options) {
  const std::int64_t runs = hinting_seeds(options);
  return how_intervals(runs) +
         (runs == 1 ? "" : " Bands in charts range from the lowest run to the highest.");
}

std::string how_scored(const RecipeOptions& options) {
  return html::paragraph(
      text("The share of test sequences whose answer is completely right when the model continues "
           "from its own predictions (greedy decoding); ",
           hinting_tests(options.scale).samples, " fresh sequences at each point. ",
           how_intervals(options)));
}

void add_notes(RecipeResult& result, const std::string& counted, const RecipeOptions& options) {
  const HintingTests tests = hinting_tests(options.scale);
  std::string notes = counted + html::paragraph("Models are scored after their last step.");
  if (options.scale == Scale::extended) {
    notes += html::paragraph(
        "The models see as many training samples as the paper's and have a sixteenth of their "
        "width. The orderings should agree.");
  } else if (options.scale != Scale::paper) {
    notes += html::paragraph(
        text("At this scale the models are narrow and train for fewer steps. Rows and columns keep "
             "the paper's names, but the \"1M\" training samples are ",
             million(options.scale), " here. The orderings should agree."));
  }
  if (tests.columns != hinting_tests(Scale::paper).columns) {
    notes += html::paragraph(text("In tables lengths ", tests.columns[0], " and ", tests.columns[1],
                                  " stand where the paper has 50 and 100."));
  }
  result.sections.emplace_back("What is counted", notes);
}

Recipe hinting_recipe(HintingRecipe recipe) {
  const auto with_seeds = [seeds = recipe.seeds](RecipeOptions options) {
    if (options.seeds == 0) options.seeds = seeds;
    return options;
  };
  return grid_recipe(
      {.id = recipe.id,
       .summary = recipe.summary,
       .scales =
           {{Scale::smoke, "narrow models, trained for seconds, short lengths"},
            {Scale::laptop,
             "small models, trained for two minutes each, three seeds; the paper's orderings"},
            {Scale::extended,
             "small models with all of the paper's training samples, three seeds; hours on "
             "one core for each run"},
            {Scale::paper, "the paper's sizes; for a GPU"}},
       .runs =
           [models = std::move(recipe.models), with_seeds](const RecipeOptions& options) {
             return hinting_runs(models(options.scale), with_seeds(options));
           },
       .report = [report = std::move(recipe.report), with_seeds](
                     const RecipeOptions& options,
                     RecipeResult& result) { report(with_seeds(options), result); },
       .reuse_from = hinting_recipes()});
}

}  // namespace longhand::app
