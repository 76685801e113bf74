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

const Settings chacal_gpt2{{"model.order", "sequential"},
                           {"model.activation", "gelu_tanh"},
                           {"model.positions", "learned"},
                           {"model.tied", "1"},
                           {"training.beta2", "0.98"}};

GridRun toy_run(const ToyModel& model, std::int64_t number, const RecipeOptions& options,
                const Settings& more) {
  static constexpr ScaledSetting sizes[] = {
      // Samples of the task have 8 blocks at the smoke scale, and 16 blocks (the default) at all
      // other scales. A model with one standard attention layer can reach an accuracy of at most
      // 49% on samples of 8 blocks, and 32% on samples of 16 blocks.
      {"task.blocks", "8", "", ""},
      {"model.width", "64", "64", "512", "128"},
      {"model.inner", "256", "256", "2048", "512"},
      {"training.steps", "2000", "6000", "24000", "24000"},
      {"training.batch", "32", "32", "128", "128"},
      {"training.rate", "3e-3", "2e-3", "3e-4", "1e-3"},
      {"training.warm_up", "250", "500", "8000", "8000"},
      {"training.evaluate_every", "200", "300", "600", "600"},
      {"training.evaluate_samples", "200", "200", "1000"},
      {"training.checkpoint_every", "", "500", "600"}};
  Config config = recipe_config("chains");
  set_all(config, chacal_gpt2);
  set_all(config, {{"model.start", "residual"}, {"training.schedule", "linear"}});
  set_all(config, sizes, options.scale);
  const std::string heads = options.scale == Scale::paper ? "8" : "4";
  config.set("model.heads", (model.chacal ? "chacal:" : "softmax:") + heads);
  config.set("model.layers", std::to_string(model.layers));
  const std::uint64_t seed = set_seed(config, options, number);
  set_all(config, more);
  set_all(config, options.settings);
  return {text(model.chacal ? "chacal" : "standard", '-', model.layers, "-seed-", seed), config};
}

ToyScore score_toy(const GridRun& run, const RecipeOptions& options,
                   std::span<const std::string_view> reuse_from) {
  LoadedRun loaded = load_finished(run, options, reuse_from);
  // The seed differs from that of evaluations during training, so these samples are new.
  const EvaluationOptions fresh{.samples = run.evaluate_samples(), .seed = options.seed + 1000};
  return {.tally = evaluate(*loaded.model, *loaded.task, fresh),
          .loss = evaluate_loss(*loaded.model, *loaded.task, fresh),
          .parameters = loaded.model->parameters().count()};
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
  for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 4); ++number) {
    for (const ToyModel& model : toy_models(options.scale)) {
      runs.push_back(toy_run(model, number, options));
    }
  }
  return runs;
}

}  // namespace longhand::app
