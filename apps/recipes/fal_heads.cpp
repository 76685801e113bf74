#include <array>

#include "apps/recipes/fal.h"
#include "apps/run/evaluation.h"

/// First-After-Last, Appendix A.2: the plain model on Cycle Tracing with different numbers of
/// heads. According to the paper, one head is best out of distribution.
namespace longhand::app::fal_heads {
namespace {

constexpr std::array<int, 3> counts{1, 2, 4};
constexpr std::string_view reuse_from[] = {"fal/table1"};

std::int64_t seeds(const RecipeOptions& options) { return seeds_of(options, 1, 3, 1); }

GridRun run_of(int heads, const RecipeOptions& options, std::int64_t number) {
  GridRun run = fal_run(cycle_tracing_experiment(options.scale), false, options, number);
  if (heads == 1) return run;
  run.config.set("model.heads", text("softmax:", heads));
  run.name += text("-heads-", heads);
  return run;
}

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const int heads : counts) runs.push_back(run_of(heads, options, number));
  }
  return runs;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  const Experiment e = cycle_tracing_experiment(options.scale);
  for (const int heads : counts) {
    for (const Experiment::Column& column : e.columns) {
      std::vector<double> values;
      std::int64_t count = 0;
      for (std::int64_t number = 0; number < seeds(options); ++number) {
        const LoadedRun run = load_finished(run_of(heads, options, number), options, reuse_from);
        const tasks::Tally tally = evaluate(*run.model, *run.config.task(column.distribution),
                                            {.samples = run.config.training().evaluate_samples,
                                             .seed = options.seed + 1000,
                                             .reading = Reading::decoded});
        values.push_back(tally.at(e.metric).mean());
        count = tally.at(e.metric).count;
      }
      add_row(result, text(heads, heads == 1 ? " head" : " heads"), column.title, values,
              heads == 1 ? std::optional(column.paper_baseline) : std::nullopt, count);
    }
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph("Right transitions before the first mistake, decoded. All heads together "
                      "have the same width. The paper prints figures for one head only and states "
                      "that it is the best out of distribution. " +
                      how_intervals(seeds(options))));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "fal/heads",
     .summary = "Cycle Tracing with the plain model and 1, 2 or 4 heads of the same total width",
     .scales = {{Scale::smoke, "one run of 100 steps each: ten seconds on 2 cores"},
                {Scale::laptop, "the plain model of fal/table1, three seeds: hours on one core"},
                {Scale::extended, "the same at the extended scale: days on two cores"},
                {Scale::paper, "the paper's size; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = reuse_from})};

}  // namespace
}  // namespace longhand::app::fal_heads
