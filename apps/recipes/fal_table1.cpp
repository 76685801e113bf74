#include <algorithm>

#include "apps/html/chart.h"
#include "apps/recipes/recipe.h"
#include "apps/run/evaluation.h"
#include "apps/run/training.h"

/// First-After-Last, Table 1: a GPT with rotary positions and the same with FAL heads, on Flip-Flop
/// and Cycle Tracing, in and out of the training distribution.
namespace longhand::app {
namespace {

struct Experiment {
  std::string task;
  std::string baseline, fal;                               // heads of a layer
  std::map<std::string, std::string> settings;             // of both models
  std::string metric;                                      // of the table
  std::vector<std::pair<std::string, double>> columns[2];  // title and paper's figure; per model
};

const char* const models[] = {"GPT + RoPE", "FAL-GPT + RoPE"};

Experiment flip_flop(Scale scale) {
  Experiment e{.task = "flip-flop",
               .baseline = "softmax:4",
               .fal = "softmax:3,fal:1",
               .settings = {{"model.width", "64"}},
               .metric = "sequences",
               .columns = {{{"FFL F(0.6)", 1.00}, {"FFL F(0.98)", 0.151}, {"FFL len 1024", 0.50}},
                           {{"FFL F(0.6)", 1.00}, {"FFL F(0.98)", 1.00}, {"FFL len 1024", 1.00}}}};
  auto& s = e.settings;
  if (scale == Scale::smoke) {
    s.insert({{"task.instructions", "64"},
              {"model.layers", "2"},
              {"training.steps", "300"},
              {"training.batch", "32"},
              {"training.rate", "1e-3"},
              {"training.warm_up", "50"},
              {"training.evaluate_samples", "200"}});
  } else if (scale == Scale::laptop) {
    s.insert({{"task.instructions", "512"},
              {"model.layers", "6"},
              {"training.steps", "600"},
              {"training.batch", "8"},
              {"training.rate", "1e-3"},
              {"training.warm_up", "100"},
              {"training.checkpoint_every", "100"},
              {"training.evaluate_samples", "500"}});
  } else {
    s.insert({{"task.instructions", "512"},
              {"model.layers", "6"},
              {"training.steps", "12000"},
              {"training.batch", "128"},
              {"training.rate", "1e-4"},
              {"training.warm_up", "100"},
              {"training.checkpoint_every", "500"},
              {"training.evaluate_samples", "10000"}});
  }
  return e;
}

Experiment cycle_tracing(Scale scale) {
  Experiment e{.task = "cycle-tracing",
               .baseline = "softmax:1",
               .fal = "softmax:1x704,fal:1x64",
               .settings = {{"training.schedule", "linear"}},
               .metric = "transitions",
               .columns = {{{"CT train", 0.9999}, {"CT 4x", 0.178}, {"CT 8x", 0.04}},
                           {{"CT train", 1.00}, {"CT 4x", 1.00}, {"CT 8x", 0.995}}}};
  auto& s = e.settings;
  if (scale == Scale::laptop) {
    e.fal = "softmax:1x96,fal:1x32";
    s.insert({{"task.tokenization", "numbers"},
              {"task.min-nodes", "5"},
              {"task.max-nodes", "15"},
              {"model.width", "128"},
              {"model.layers", "4"},
              {"training.steps", "6000"},
              {"training.batch", "32"},
              {"training.rate", "1e-3"},
              {"training.warm_up", "200"},
              {"training.checkpoint_every", "500"},
              {"training.evaluate_samples", "200"}});
  } else {
    s.insert({{"model.width", "768"},
              {"model.layers", "12"},
              {"training.steps", "20000"},
              {"training.batch", "64"},
              {"training.rate", "5e-5"},
              {"training.warm_up", "1000"},
              {"training.checkpoint_every", "250"},
              {"training.evaluate_samples", "1000"}});
  }
  return e;
}

/// Loss against step, thinned to some hundred points by averaging.
html::Series loss_curve(const std::string& name, const std::vector<Json>& metrics) {
  html::Series series{.name = name, .points = {}};
  std::vector<html::Point> all;
  for (const Json& line : metrics) {
    if (line.contains("loss")) {
      all.push_back({line["step"].get<double>(), line["loss"].get<double>()});
    }
  }
  const std::size_t group = std::max<std::size_t>(1, all.size() / 200);
  for (std::size_t i = 0; i + group <= all.size(); i += group) {
    html::Point mean;
    for (std::size_t k = 0; k < group; ++k) {
      mean.x += all[i + k].x / static_cast<double>(group);
      mean.y += all[i + k].y / static_cast<double>(group);
    }
    series.points.push_back(mean);
  }
  return series;
}

/// Trains both models of an experiment, or goes on with them, and adds their rows.
bool compare(const Experiment& e, const RecipeOptions& options, RecipeResult& result) {
  html::LineChart chart{
      .x_label = "step", .y_label = "loss (" + e.task + ")", .series = {}, .log_y = true};
  std::string configuration;
  for (int m = 0; m < 2; ++m) {
    Config config(e.task);
    config.set("model.heads", m == 0 ? e.baseline : e.fal);
    config.set("training.seed", std::to_string(options.seed));
    for (const auto& [key, value] : e.settings) config.set(key, value);
    for (const auto& [key, value] : options.settings) config.set(key, value);
    const auto path = options.out / (e.task + (m == 0 ? "-baseline" : "-fal"));
    RunFolder folder = std::filesystem::exists(path / "config.ini")
                           ? RunFolder(path)
                           : RunFolder::create(path, config);
    LONGHAND_CHECK(folder.config().ini() == config.ini(), path.string(),
                   ": holds a run of another configuration");
    const TrainingResult trained = train(folder, options.quiet);
    if (!trained.finished) return false;

    LoadedRun run = load_run(path, trained.step);
    std::size_t column = 0;
    for (const tasks::Distribution& d : config.kind().distributions) {
      const auto task = config.task(d.name);
      const tasks::Tally tally =
          evaluate(*run.model, *task,
                   {.samples = config.integer("training.evaluate_samples", 1, 1 << 24),
                    .seed = options.seed + 1});
      const auto& [title, paper] = e.columns[m].at(column++);
      const tasks::Metric& metric = tally.at(e.metric);
      const tasks::Interval interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
      result.rows.push_back({models[m], title, metric.mean(), interval.low, interval.high, paper});
    }
    chart.series.push_back(loss_curve(models[m], folder.metrics()));
    configuration += "# " + path.filename().string() + "\n" + config.ini() + "\n";
  }
  result.sections.emplace_back(
      "Training on " + e.task,
      html::figure(line_chart(chart), "Training loss") + html::code(configuration));
  return true;
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  result.stopped = !compare(flip_flop(options.scale), options, result);
  if (!result.stopped && options.scale != Scale::smoke) {
    result.stopped = !compare(cycle_tracing(options.scale), options, result);
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "Flip-Flop: the share of sequences whose reads are all right, every token of the sample "
          "given (teacher forcing). Cycle Tracing: transitions, counted while everything before "
          "was right. Intervals are Wilson's, 95%."));
  return result;
}

const RegisterRecipe recipe{
    {.id = "fal/table1",
     .summary = "GPT against FAL-GPT on Flip-Flop and Cycle Tracing, in and out of distribution",
     .scales = {{Scale::smoke, "Flip-Flop only, 64 instructions, 2 layers: 2 minutes on 2 cores"},
                {Scale::laptop, "the paper's Flip-Flop model and lengths, a small Cycle Tracing"},
                {Scale::paper, "the paper's sizes; for a GPU"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app
