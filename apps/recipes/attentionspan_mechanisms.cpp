#include <algorithm>

#include "apps/html/page.h"
#include "apps/recipes/attentionspan.h"
#include "apps/recipes/chosen.h"

/// Trains AttentionSpan's tasks with mechanisms (kinds of heads and positions) that the paper does
/// not use, and compares how they generalize to longer samples. All models of a task have the same
/// blocks, width, steps, batch size and learning rate.
namespace longhand::app::attentionspan_mechanisms {
namespace {

struct Mechanism {
  std::string_view name, title, heads, positions;
  std::string_view ids = "places";
};
constexpr Mechanism mechanisms[] = {
    {"rope", "softmax, RoPE", "softmax", "rotary"},
    {"nope", "softmax, no positions", "softmax", "none"},
    {"fal", "FAL beside softmax, RoPE", "softmax,fal", "rotary"},
    {"fal-nope", "FAL beside softmax, no positions", "softmax,fal", "none"},
    {"chacal", "ChaCAL, RoPE", "chacal", "rotary"},
    {"chacal-nope", "ChaCAL, no positions", "chacal", "none"},
    {"stick", "stick-breaking, no positions", "stick", "none"},
    {"stick-rope", "stick-breaking beside softmax, RoPE", "softmax,stick", "rotary"},
    {"delta", "Gated DeltaNet beside softmax, RoPE", "softmax,delta", "rotary"},
    {"delta-nope", "Gated DeltaNet beside softmax, no positions", "softmax,delta", "none"},
    {"path", "PaTH", "path", "none"},
    {"coupled", "softmax, coupled positions", "softmax", "learned", "coupled"},
    {"coupled-rope", "softmax, RoPE by coupled positions", "softmax", "rotary", "coupled"},
    {"coupled-entmax", "entmax, coupled positions", "entmax", "learned", "coupled"},
    {"abacus", "softmax, Abacus", "softmax", "learned", "abacus"},
};

std::vector<Mechanism> chosen_mechanisms(const RecipeOptions& options) {
  if (options.mechanisms.empty()) return {std::begin(mechanisms), std::end(mechanisms)};
  std::vector<Mechanism> some;
  for (const Mechanism* mechanism :
       chosen("mechanisms", options.mechanisms, std::span<const Mechanism>(mechanisms))) {
    some.push_back(*mechanism);
  }
  return some;
}

/// The tasks selected by --tasks. At the laptop scale, the default omits multiplication and value
/// assignment. No mechanism answers any longer sample of these two tasks completely right, and they
/// would use most of the time.
std::vector<AlgorithmicTask> tasks_of(const RecipeOptions& options) {
  std::vector<AlgorithmicTask> tasks = chosen_tasks(options, algorithmic_tasks());
  if (options.scale == Scale::laptop && options.tasks.empty()) {
    std::erase_if(tasks, [](const AlgorithmicTask& task) {
      return task.name == "multiplication" || task.name == "value-assignment";
    });
  }
  return tasks;
}

/// True if the task defines the positions that the mechanism uses. Not every task defines coupled
/// positions (equal for tokens that belong together) or Abacus positions (a digit's index in its
/// number).
bool fits(const Mechanism& mechanism, const AlgorithmicTask& task) {
  const std::int32_t any = 0;
  const tasks::TaskKind& kind = tasks::task_kind(task.name);
  const auto made = kind.make(kind.defaults());
  return mechanism.ids == "places" ||
         !(mechanism.ids == "abacus" ? made->digit_places({&any, 1}) : made->couplings({&any, 1}))
              .empty();
}

/// Makes a list of heads, such as "softmax:4". It has as many heads as the list `table`. `kinds` is
/// the kind of all heads, or two kinds such as "softmax,fal", each for half of the heads.
std::string heads_of(std::string_view kinds, const std::string& table) {
  const std::int64_t count = head_count(table);
  const std::size_t comma = kinds.find(',');
  if (comma == std::string_view::npos) return text(kinds, ':', count);
  return text(kinds.substr(0, comma), ':', count / 2, ',', kinds.substr(comma + 1), ':',
              count - count / 2);
}

GridRun mechanism_run(const AlgorithmicTask& task, const Mechanism& mechanism, std::int64_t number,
                      const RecipeOptions& options) {
  GridRun plain = scratch_run(task, number, options);
  const std::string heads = heads_of(mechanism.heads, plain.config.model_settings().heads);
  GridRun run = scratch_run(task, number, options,
                            {{"model.heads", heads},
                             {"model.positions", std::string(mechanism.positions)},
                             {"model.position_ids", std::string(mechanism.ids)}});
  // If the mechanism changes no setting, the run is the same as in attentionspan/table6.
  if (run.config.ini() == plain.config.ini()) return plain;
  run.name += text('-', mechanism.name);
  return run;
}

/// The runs of all models for the first seed, then for the next seed, and so on. Each seed is
/// finished before the next begins.
std::vector<GridRun> mechanism_runs(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds_of(options, 3, 3, 3); ++number) {
    for (const AlgorithmicTask& task : tasks_of(options)) {
      for (const Mechanism& mechanism : chosen_mechanisms(options)) {
        if (!fits(mechanism, task)) continue;
        runs.push_back(mechanism_run(task, mechanism, number, options));
      }
    }
  }
  return runs;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// A table row with the median over seeds in percent. Its interval reaches from the worst to the
/// best seed.
Row spread(const std::string& row, const std::string& column, const std::vector<double>& values,
           std::optional<double> paper = {}) {
  const auto [worst, best] = std::ranges::minmax(values);
  return {.row = row,
          .column = column,
          .value = 100 * median(values),
          .low = 100 * worst,
          .high = 100 * best,
          .paper = paper};
}

std::int64_t samples_of(Scale scale) { return scale == Scale::smoke ? 200 : 1000; }

void report(const RecipeOptions& options, RecipeResult& result) {
  const std::int64_t seeds = seeds_of(options, 3, 3, 3);
  result.bounds = Bounds::seeds;
  const std::vector<Mechanism> some = chosen_mechanisms(options);
  std::vector<std::vector<std::string>> best;
  for (const AlgorithmicTask& task : tasks_of(options)) {
    const Mechanism* first = nullptr;
    double most = -1, partial = 0;
    for (const Mechanism& mechanism : some) {
      if (!fits(mechanism, task)) continue;
      TaskScores id, ood;
      for (std::int64_t number = 0; number < seeds; ++number) {
        const GridRun run = mechanism_run(task, mechanism, number, options);
        id.add(score_task(run, "train", options, samples_of(options.scale), false));
        ood.add(score_task(run, "ood", options, samples_of(options.scale), false));
      }
      const std::string row = text(task.title, ", ", mechanism.title);
      result.rows.push_back(spread(row, "ID Acc.", id.exact, task.scratch_id));
      result.rows.push_back(spread(row, "OOD Acc.", ood.exact, task.scratch_ood));
      result.rows.push_back(spread(row, "OOD partial", ood.partial));
      const double exact = median(ood.exact), tokens = median(ood.partial);
      if (exact > most || (exact == most && tokens > partial)) {
        first = &mechanism;
        most = exact;
        partial = tokens;
      }
    }
    if (!first) continue;  // none of the selected mechanisms fits the task
    best.push_back({std::string(task.title), std::string(first->title), text(100 * most),
                    text(100 * partial)});
  }
  result.sections.emplace_back(
      "The best out of distribution, by the median of exact answers",
      html::table({"task", "mechanism", "OOD Acc., %", "OOD partial, %"}, best));
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text(
          "The models of attentionspan/table6 with other heads or positions. Blocks, width, steps, "
          "batches and rate are the same. Each figure is the median of ",
          seeds, " seeds, with the worst and the best next to it. ", samples_of(options.scale),
          " samples of each distribution, under teacher forcing. The paper's figures are those of "
          "its Table 6, for the whole Llama-3.2-1B from random weights. ",
          how_optimized(options))));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "attentionspan/mechanisms",
     .summary = "other heads and positions on the six tasks, in and out of distribution",
     .scales = {{Scale::smoke, "77 mechanisms and tasks, three seeds: an hour on 2 cores"},
                {Scale::laptop,
                 "the models of attentionspan/table6 on four of the tasks: estimated two hours on "
                 "one core"},
                {Scale::paper, "8 layers of width 512; for a GPU"}},
     .runs = mechanism_runs,
     .report = report,
     .reuse_from = beside_attentionspan(),
     .takes = {"optimizer", "mechanisms", "tasks"}})};

}  // namespace
}  // namespace longhand::app::attentionspan_mechanisms
