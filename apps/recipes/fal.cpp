#include "apps/recipes/fal.h"

#include "core/error.h"

namespace longhand::app {

Experiment flip_flop_experiment(Scale scale) {
  Experiment e{.task = "flip-flop",
               .baseline = "softmax:4",
               .fal = "softmax:3,fal:1",
               .settings = {{"model.width", "64"}},
               .metric = "sequences",
               .columns = {{"train", "FFL F(0.6)", 1.00, 1.00},
                           {"sparse", "FFL F(0.98)", 0.151, 1.00},
                           {"2x", "FFL len 1024", 0.50, 1.00}}};
  auto& s = e.settings;
  if (scale == Scale::smoke) {
    s.insert({{"task.instructions", "64"},
              {"model.layers", "2"},
              {"training.steps", "1200"},
              {"training.batch", "32"},
              {"training.rate", "1e-3"},
              {"training.warm_up", "50"},
              {"training.evaluate_samples", "200"}});
  } else if (scale == Scale::laptop) {
    s.insert({{"task.instructions", "512"},
              {"model.layers", "6"},
              {"training.steps", "1500"},
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

Experiment cycle_tracing_experiment(Scale scale) {
  Experiment e{.task = "cycle-tracing",
               .baseline = "softmax:1",
               .fal = "softmax:1x704,fal:1x64",
               .settings = {{"training.schedule", "linear"}},
               .metric = "transitions",
               .columns = {{"train", "CT train", 0.9999, 1.00},
                           {"4x", "CT 4x", 0.178, 1.00},
                           {"8x", "CT 8x", 0.04, 0.995}},
               .decoded = true};
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

std::int64_t fal_seeds(const RecipeOptions& options) { return seeds_of(options, 1, 1, 1); }

GridRun fal_run(const Experiment& experiment, bool fal, const RecipeOptions& options,
                std::int64_t number) {
  Config config(experiment.task);
  config.set("model.heads", fal ? experiment.fal : experiment.baseline);
  const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(number);
  config.set("training.seed", std::to_string(seed));
  for (const auto& [key, value] : experiment.settings) config.set(key, value);
  for (const auto& [key, value] : options.settings) config.set(key, value);
  const std::string name = experiment.task + (fal ? "-fal" : "-baseline");
  return {number == 0 ? name : text(name, "-seed-", seed), std::move(config)};
}

std::vector<GridRun> fal_runs(const Experiment& experiment, const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < fal_seeds(options); ++number) {
    for (const bool fal : {false, true}) {
      runs.push_back(fal_run(experiment, fal, options, number));
    }
  }
  return runs;
}

}  // namespace longhand::app
