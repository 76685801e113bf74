#include <algorithm>

#include "apps/recipes/fal.h"
#include "apps/run/inspection.h"
#include "apps/run/training.h"

/// First-After-Last, Figure 2: where the FAL heads of a trained model look.
namespace longhand::app {
namespace {

/// The FAL run of fal/table1 beside this recipe's folder when it is finished and of the same
/// configuration; else this recipe's own.
std::filesystem::path run_folder(const Experiment& e, const Config& config,
                                 const RecipeOptions& options) {
  const auto table =
      folder_of(e, true, options.out.parent_path() / text("fal-table1-", name_of(options.scale)));
  if (std::filesystem::exists(table / "config.ini")) {
    const RunFolder folder(table);
    const nn::CheckpointStore store(folder.checkpoints(), 1);
    const auto steps = config.integer("training.steps", 0, std::int64_t{1} << 40);
    if (folder.config().ini() == config.ini() && store.latest() == steps) return table;
  }
  return folder_of(e, true, options.out);
}

RecipeResult run(const RecipeOptions& options) {
  const Experiment e = flip_flop_experiment(options.scale);
  const Config config = config_of(e, true, options);
  const auto path = run_folder(e, config, options);
  RecipeResult result;
  if (path == folder_of(e, true, options.out)) {
    RunFolder folder = open_or_create(path, config);
    result.stopped = !train(folder, options.manner).finished;
    if (result.stopped) return result;
  }
  LoadedRun loaded = load_run(path, config.integer("training.steps", 0, std::int64_t{1} << 40));
  for (const Experiment::Column& column : e.columns) {
    const auto task = config.task(column.distribution);
    const auto shares =
        fal_shares(*loaded.model, *task,
                   {.samples = config.integer("training.evaluate_samples", 1, 1 << 24),
                    .seed = options.seed + 1});
    for (const FalShare& share : shares) {
      const double hits = static_cast<double>(share.hits);
      const double count = static_cast<double>(share.count);
      const auto interval = tasks::wilson(hits, count);
      result.rows.push_back({text("layer ", share.layer, ", head ", share.head), column.title,
                             count > 0 ? hits / count : 0, interval.low, interval.high});
    }
  }

  Rng rng(options.seed, Purpose::evaluation, 0, 0);
  const auto task = config.task();
  const tasks::Sample sample = task->sample(rng, 0);
  const std::size_t shown = std::min<std::size_t>(sample.tokens.size(), 64);
  const auto views = look_inside(*loaded.model, std::span(sample.tokens).first(shown));
  result.sections.emplace_back(
      "Where each token's FAL head looks",
      html::paragraph("Each row of the figure's table is the share of read tokens whose selection "
                      "is the last write or read.") +
          selection_pictures(*task, sample, views));
  result.sections.emplace_back("Softmax heads", attention_maps(*task, sample, views));
  result.sections.emplace_back("Configuration of the run",
                               html::code("# " + path.string() + "\n" + config.ini()));
  return result;
}

const RegisterRecipe recipe{
    {.id = "fal/figure2",
     .summary = "which positions the FAL heads of a trained model select",
     .scales = {{Scale::smoke, "the FAL model of fal/table1, trained if it is not there"},
                {Scale::laptop, "the same at the paper's lengths"},
                {Scale::paper, "the same at the paper's size; for a GPU"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app
