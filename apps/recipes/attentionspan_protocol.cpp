#include "apps/recipes/attentionspan.h"

/// AttentionSpan, Table 6 with the paper's own training protocol: a large model with random initial
/// weights is trained for 1,500 steps, with batch size 4 and a constant learning rate of 5e-6.
namespace longhand::app::attentionspan_protocol {
namespace {

/// Settings of the models and of their training at each scale. At the paper's scale, the blocks are
/// those of Llama-3.2-1B, but the vocabulary consists of the task's characters.
constexpr ScaledSetting settings[] = {
    {"model.width", "64", "256", "2048"},
    {"model.layers", "2", "8", "16"},
    {"model.inner", "192", "1024", "8192"},
    {"model.heads", "softmax:4", "softmax:8/2x32", "softmax:32/8x64"},
    {"model.deviation", "0.02", "0.02", "0.02"},
    {"model.rope_base", "500000", "500000", "500000"},
    {"training.steps", "20", "1500", "1500"},
    {"training.batch", "4", "4", "4"},
    {"training.rate", "5e-6", "5e-6", "5e-6"},
    {"training.schedule", "constant", "constant", "constant"},
    {"training.warm_up", "0", "0", "0"},
    {"training.clip", "0", "0", "0"},
    {"training.evaluate_every", "10", "300", "300"},
    {"training.evaluate_samples", "20", "96", "96"},
    {"training.checkpoint_every", "0", "0", "0"}};

GridRun run_of(const AlgorithmicTask& task, std::int64_t number, const RecipeOptions& options) {
  Settings more;
  for (const ScaledSetting& s : settings) more[s.key] = s.at(options.scale);
  if (!task.option.empty()) more[text("task.", task.option)] = std::string(task.scored);
  GridRun run = scratch_run(task, number, options, more);
  run.name = "protocol-" + run.name;
  return run;
}

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 1); ++number) {
    for (const AlgorithmicTask& task : chosen_tasks(options, algorithmic_tasks())) {
      runs.push_back(run_of(task, number, options));
    }
  }
  return runs;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  const std::int64_t samples = options.scale == Scale::smoke ? 96 : 960;
  for (const AlgorithmicTask& task : chosen_tasks(options, algorithmic_tasks())) {
    for (const auto& [title, distribution, paper] :
         {std::tuple("ID", "train", task.scratch_id), std::tuple("OOD", "ood", task.scratch_ood)}) {
      TaskScores scores;
      for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 1); ++number) {
        scores.add(
            score_task(run_of(task, number, options), distribution, options, samples, false));
      }
      add_percent(result, task, text(title, " Acc."), scores.exact, paper, scores.samples);
      add_percent(result, task, text(title, " partial"), scores.partial, {}, scores.tokens);
    }
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("Percent under teacher forcing, ", samples,
               " samples of each distribution, for models trained with the protocol of the paper's "
               "Table 6: random weights, 1,500 steps with batch size 4 (20 steps at the smoke "
               "scale) and a constant rate of 5e-6. The paper prints its figures without a unit; "
               "those out of distribution may be shares of tokens. ",
               how_intervals(seeds_of(options, 1, 3, 1)), " ", how_optimized(options))));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "attentionspan/protocol",
     .summary =
         "Table 6 with the paper's protocol: random weights, 1,500 steps, batch size 4, rate 5e-6",
     .scales = {{Scale::smoke, "20 steps of small models: seconds"},
                {Scale::laptop, "8 layers of width 256, three seeds: an hour on one core"},
                {Scale::paper, "the shape of Llama-3.2-1B; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = beside_attentionspan(),
     .takes = {"tasks", "optimizer"}})};

}  // namespace
}  // namespace longhand::app::attentionspan_protocol
