#include "apps/recipes/chacal.h"

#include <algorithm>

#include "apps/run/batches.h"
#include "apps/run/evaluation.h"
#include "core/error.h"

namespace longhand::app {
namespace fs = std::filesystem;

std::string ToyModel::name() const { return text(chacal ? "ChaCAL" : "Standard", " L=", layers); }

std::vector<ToyModel> toy_models(Scale scale) {
  const ToyModel chained{true, 1, 1.0, 0.0};
  if (scale == Scale::smoke) return {{false, 1, 0.499, 1.20}, chained};
  return {{false, 1, 0.499, 1.20}, {false, 2, 0.776, 0.54}, {false, 3, 0.909, 0.21},
          {false, 4, 0.985, 0.03}, {false, 5, 1.0, 0.0},    chained};
}

Settings toy_settings(Scale scale) {
  Settings s{{"model.order", "sequential"},  {"model.activation", "gelu_tanh"},
             {"model.positions", "learned"}, {"model.tied", "1"},
             {"model.start", "residual"},    {"training.beta2", "0.98"},
             {"training.schedule", "linear"}};
  const auto add = [&s](const Settings& more) { s.insert(more.begin(), more.end()); };
  if (scale == Scale::smoke) {
    add({{"task.blocks", "8"},  // one standard layer's bound is then 49%, with 16 32%
         {"model.width", "64"},
         {"model.inner", "256"},
         {"training.steps", "2000"},
         {"training.batch", "32"},
         {"training.rate", "3e-3"},
         {"training.warm_up", "250"},
         {"training.evaluate_every", "200"},
         {"training.evaluate_samples", "200"}});
  } else if (scale == Scale::laptop) {
    add({{"model.width", "64"},
         {"model.inner", "256"},
         {"training.steps", "6000"},
         {"training.batch", "32"},
         {"training.rate", "2e-3"},
         {"training.warm_up", "500"},
         {"training.evaluate_every", "300"},
         {"training.evaluate_samples", "200"},
         {"training.checkpoint_every", "500"}});
  } else {
    add({{"model.width", "512"},
         {"model.inner", "2048"},
         {"training.steps", "24000"},
         {"training.batch", "128"},
         {"training.rate", "3e-4"},
         {"training.warm_up", "8000"},
         {"training.evaluate_every", "600"},
         {"training.evaluate_samples", "1000"},
         {"training.checkpoint_every", "600"}});
  }
  return s;
}

GridRun toy_run(const ToyModel& model, std::int64_t number, const RecipeOptions& options,
                const Settings& more) {
  Config config("chains");
  for (const auto& [key, value] : toy_settings(options.scale)) config.set(key, value);
  const std::string heads = options.scale == Scale::paper ? "8" : "4";
  config.set("model.heads", (model.chacal ? "chacal:" : "softmax:") + heads);
  config.set("model.layers", std::to_string(model.layers));
  const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(number);
  config.set("training.seed", std::to_string(seed));
  for (const auto& [key, value] : more) config.set(key, value);
  for (const auto& [key, value] : options.settings) config.set(key, value);
  return {text(model.chacal ? "chacal" : "standard", '-', model.layers, "-seed-", seed), config};
}

ToyScore score_toy(const fs::path& run, std::uint64_t seed) {
  LoadedRun loaded = load_run(
      run, {.step = RunFolder(run).config().integer("training.steps", 0, std::int64_t{1} << 40)});
  const std::int64_t samples = loaded.config.integer("training.evaluate_samples", 1, 1 << 24);
  ToyScore score{.tally = evaluate(*loaded.model, *loaded.task, {.samples = samples, .seed = seed}),
                 .parameters = loaded.model->parameters().count()};
  score.loss = evaluate_loss(*loaded.model, *loaded.task, {.samples = samples, .seed = seed});
  return score;
}

Curve curve_over(std::span<const fs::path> runs, std::string_view figure) {
  std::map<double, std::vector<double>> at;
  for (const fs::path& run : runs) {
    for (const Json& line : RunFolder(run).metrics()) {
      const Json* const found = line.find(figure);
      if (found && found->is_number()) {
        at[line["step"].number()].push_back(found->number());
      }
    }
  }
  Curve curve;
  for (const auto& [step, values] : at) {
    if (values.size() != runs.size()) continue;
    curve.steps.push_back(step);
    curve.mean.push_back(mean_over(values).mean);
    curve.least.push_back(*std::ranges::min_element(values));
    curve.most.push_back(*std::ranges::max_element(values));
  }
  return curve;
}

std::vector<GridRun> toy_runs(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds_of(options, 1, 1, 4); ++number) {
    for (const ToyModel& model : toy_models(options.scale)) {
      runs.push_back(toy_run(model, number, options));
    }
  }
  return runs;
}

}  // namespace longhand::app
