#include <array>

#include "apps/recipes/attentionspan.h"
#include "core/error.h"
#include "nn/mixers/softmax.h"

/// A variant of AttentionSpan's section 6.4, which repairs a model by training one column of every
/// head's query and key projections. The paper trains the last column. This recipe compares five
/// different columns.
namespace longhand::app::attentionspan_columns {
namespace {

/// Positions of the trained columns within a head, in eighths of the head's width. 8 stands for the
/// last column.
constexpr std::array<std::int64_t, 5> eighths{0, 2, 4, 6, 8};

std::int64_t width_of_heads(const Config& config) {
  for (const nn::MixerList& list : config.model(*config.task()).mixers) {
    for (const nn::AnyMixer& mixer : list) {
      if (const auto* heads = dynamic_cast<const nn::SoftmaxHeads*>(&*mixer)) return heads->width;
    }
  }
  fail("attentionspan/columns: expected a model with softmax heads");
}

/// The tasks whose models are repaired, selected by --tasks. The default is addition, the task on
/// which the paper uses this repair.
std::vector<AlgorithmicTask> tasks_of(const RecipeOptions& options) {
  if (options.tasks.empty()) return {algorithmic_task("addition")};
  return chosen_tasks(options, algorithmic_tasks());
}

std::vector<Lineage> all_runs(const RecipeOptions& options) {
  return lineages(tasks_of(options), options, [&](const auto& task, std::int64_t number) {
    std::vector<GridRun> runs{softmax_run(task, number, options)};
    const std::int64_t width = width_of_heads(runs.front().config);
    for (const std::int64_t eighth : eighths) {
      GridRun run = columns_repair(runs.front(), options);
      if (eighth < 8) {  // for the last column, the run of attentionspan/sec6.4 is used
        const std::int64_t column = eighth * width / 8;
        run.config.set("training.columns", std::to_string(column));
        run.name += text("-column-", column);
      }
      runs.push_back(std::move(run));
    }
    return runs;
  });
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Lineage> all = all_runs(options);
  if (!train_all(all, options, result)) return result;
  const std::int64_t samples = options.scale == Scale::smoke || !options.model.empty() ? 200 : 1000;
  for (const Lineage& lineage : all) {
    const std::int64_t width = width_of_heads(lineage.of_seeds(0).front().config);
    for (std::size_t i = 0; i <= eighths.size(); ++i) {
      const std::string column = i == 0 ? "before"
                                 : i == eighths.size()
                                     ? "the last column"
                                     : text("column ", eighths[i - 1] * width / 8, " of ", width);
      for (const auto& [title, distribution] :
           {std::pair("ID", "train"), std::pair("OOD", "ood")}) {
        TaskScores scores;
        for (const GridRun& one : lineage.of_seeds(i)) {
          scores.add(score_task(one, distribution, options, samples, false));
        }
        const std::string row = text(lineage.task.title, ", ", column);
        add_percent(result, row, title, scores.exact, {}, scores.samples);
        add_percent(result, row, text(title, " partial"), scores.partial, {}, scores.tokens);
      }
    }
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("Percent under teacher forcing, ", samples,
               " samples of each distribution. Only one column of every head's queries and keys is "
               "trained, on samples out of distribution. Columns are counted from 0 within a head. "
               "The paper prints no figures. It states that usually any column works, and that the "
               "last one, which rotary positions rotate the least, is often the best. ",
               how_intervals(std::ssize(all.front().seeds)), " ", learned_model(options),
               how_optimized(options))));
  return result;
}

const RegisterRecipe recipe{
    {.id = "attentionspan/columns",
     .summary = "the repair of section 6.4 with each of five columns of every head",
     .scales =
         {{Scale::smoke, "a small model of addition and five repairs: minutes on 2 cores"},
          {Scale::laptop,
           "addition, three seeds: the model of attentionspan/table6 and five repairs of each"},
          {Scale::paper, "width 512, three seeds; for a GPU"}},
     .run = run,
     .pieces = [](const RecipeOptions& options) { return pieces_of(all_runs(options), options); },
     .takes = {"model", "tasks", "optimizer"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_columns
