#include "apps/recipes/fal.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::app {

namespace {

constexpr ScaledSetting flip_flop_settings[] = {
    {"task.instructions", "64", "512", "512"},
    {"model.width", "64", "64", "64"},
    {"model.layers", "2", "6", "6"},
    {"training.steps", "1200", "600", "12000", "12000"},
    {"training.batch", "32", "8", "128", "128"},
    {"training.rate", "1e-3", "1e-3", "1e-4", "1e-4"},
    {"training.warm_up", "50", "100", "100"},
    {"training.checkpoint_every", "", "100", "500"},
    {"training.evaluate_samples", "200", "500", "10000", "1000"}};

// The smoke scale's settings are used only by the recipe fal/heads, because fal/table1 omits Cycle
// Tracing at this scale.
constexpr ScaledSetting cycle_tracing_settings[] = {
    {"task.tokenization", "numbers", "numbers", "", ""},
    {"task.min-nodes", "5", "5", ""},
    {"task.max-nodes", "8", "15", ""},
    {"model.width", "64", "128", "768"},
    {"model.layers", "2", "4", "12"},
    {"training.schedule", "linear", "linear", "linear"},
    {"training.steps", "100", "6000", "20000", "24000"},
    {"training.batch", "16", "32", "64"},
    {"training.rate", "1e-3", "1e-3", "5e-5"},
    {"training.warm_up", "10", "200", "1000", "1000"},
    {"training.checkpoint_every", "", "500", "250"},
    {"training.evaluate_samples", "20", "200", "1000"}};

}  // namespace

Experiment flip_flop_experiment() {
  return {.name = "flip-flop",
          .baseline = "softmax:4",
          .fal = "softmax:3,fal:1",
          .settings = flip_flop_settings,
          .metric = "sequences",
          .part_metric = "reads",
          .columns = {{"train", "FFL F(0.6)", 1.00, 1.00},
                      {"sparse", "FFL F(0.98)", 0.151, 1.00},
                      {"2x", "FFL len 1024", 0.50, 1.00}},
          .fal_seeds = 10};  // many seeds, because the results of seeds vary strongly
}

Experiment cycle_tracing_experiment(Scale scale) {
  return {.name = "cycle-tracing",
          .baseline = "softmax:1",
          .fal = scale == Scale::paper    ? "softmax:1x704,fal:1x64"
                 : scale == Scale::laptop ? "softmax:1x96,fal:1x32"
                                          : "softmax:1x64,fal:1x64",
          .settings = cycle_tracing_settings,
          .metric = "transitions",
          .columns = {{"train", "CT train", 0.9999, 1.00},
                      {"4x", "CT 4x", 0.178, 1.00},
                      {"8x", "CT 8x", 0.04, 0.995}},
          .decoded = true};
}

std::int64_t fal_seeds(const Experiment& experiment, bool fal, const RecipeOptions& options) {
  const bool flip_flop = experiment.name == "flip-flop";
  if (options.scale == Scale::extended && flip_flop)
    return std::max<std::int64_t>(1, options.seeds);
  const std::int64_t at_papers_scale = flip_flop && !fal ? 3 : 1;
  return seeds_of(options, 1, fal ? experiment.fal_seeds : 3, at_papers_scale);
}

GridRun fal_run(const Experiment& experiment, bool fal, const RecipeOptions& options,
                std::int64_t number) {
  Config config = recipe_config(experiment.name);
  config.set("model.heads", fal ? experiment.fal : experiment.baseline);
  const std::uint64_t seed = set_seed(config, options, number);
  set_all(config, experiment.settings, options.scale);
  set_all(config, options.settings);
  const std::string name = experiment.name + (fal ? "-fal" : "-baseline");
  return {number == 0 ? name : text(name, "-seed-", seed), std::move(config)};
}

std::vector<GridRun> fal_runs(const Experiment& experiment, const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (const bool fal : {false, true}) {
    for (std::int64_t number = 0; number < fal_seeds(experiment, fal, options); ++number) {
      runs.push_back(fal_run(experiment, fal, options, number));
    }
  }
  return runs;
}

}  // namespace longhand::app
