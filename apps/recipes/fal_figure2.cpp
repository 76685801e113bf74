#include <algorithm>

#include "apps/recipes/fal.h"
#include "apps/run/inspection.h"

/// First-After-Last, Figure 2: the positions that the FAL heads of a trained model select.
namespace longhand::app::fal_figure2 {
namespace {

constexpr std::string_view reuse_from[] = {"fal/table1"};

/// The runs of the FAL model of fal/table1 for all seeds.
std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < fal_seeds(flip_flop_experiment(), true, options);
       ++number) {
    runs.push_back(fal_run(flip_flop_experiment(), true, options, number));
  }
  return runs;
}

/// Measures every FAL head on one distribution of the task. The results are one column of the
/// table, with one row per head. In each run, the measured value of a head is the share of tokens
/// at which the head selects the token that the task requires.
void add_shares(std::span<LoadedRun> runs, const Experiment::Column& column,
                const RecipeOptions& options, RecipeResult& result) {
  std::vector<std::vector<FalShare>> shares;  // indexed as shares[run][head]
  for (LoadedRun& run : runs) {
    const auto task = run.config.task(column.distribution);
    shares.push_back(fal_shares(
        *run.model, *task,
        {.samples = run.config.training().evaluate_samples, .seed = options.seed + 1000}));
  }
  for (std::size_t head = 0; head < shares.front().size(); ++head) {
    std::vector<double> values;
    for (const auto& of_run : shares) {
      const FalShare& share = of_run[head];
      values.push_back(
          share.count > 0 ? static_cast<double>(share.hits) / static_cast<double>(share.count) : 0);
    }
    const FalShare& first = shares.front()[head];
    add_row(result, text("layer ", first.layer, ", head ", first.head), column.title, values, {},
            first.count);
  }
}

void report(const RecipeOptions& options, RecipeResult& result) {
  const std::vector<GridRun> runs = runs_of(options);
  std::vector<LoadedRun> loaded;
  for (const GridRun& run : runs) loaded.push_back(load_finished(run, options, reuse_from));
  for (const Experiment::Column& column : flip_flop_experiment().columns) {
    add_shares(loaded, column, options, result);
  }

  Rng rng(options.seed, Purpose::evaluation, 0, 0);
  const auto task = loaded.front().config.task();
  const tasks::Sample sample = task->sample(rng, 0);
  const std::size_t shown = std::min<std::size_t>(sample.tokens.size(), 64);
  nn::Decoder& model = *loaded.front().model;
  const auto views = look_inside(model, beginning_for(model, *task, sample, shown));
  result.sections.emplace_back(
      "Where each token's FAL head looks",
      html::paragraph("Each row of the figure's table is the share of read tokens at which the "
                      "head selects the last write or read. " +
                      how_intervals(std::ssize(runs)) +
                      (runs.size() == 1 ? "" : " The pictures are of the first run.")) +
          selection_pictures(*task, sample, views));
  result.sections.emplace_back("Softmax heads", attention_maps(*task, sample, views));
}

const RegisterRecipe recipe{
    grid_recipe({.id = "fal/figure2",
                 .summary = "which positions the FAL heads of a trained model select",
                 .scales = {{Scale::smoke, "the FAL model of fal/table1, trained if missing"},
                            {Scale::laptop, "the same at the paper's lengths, ten seeds"},
                            {Scale::paper, "the same at the paper's size; for a GPU"}},
                 .runs = runs_of,
                 .report = report,
                 .reuse_from = reuse_from})};

}  // namespace
}  // namespace longhand::app::fal_figure2
