#include <algorithm>

#include "apps/html/heat_map.h"
#include "apps/html/page.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/attention_report.h"
#include "apps/run/inspection.h"
#include "apps/run/sweep.h"
#include "tasks/statistics.h"

/// AttentionSpan, Figure 1: the head that reverses strings, on strings as long as those of training
/// and on longer ones.
namespace longhand::app::attentionspan_fig1 {
namespace {

constexpr std::string_view lengths = "length=10,20,30,50";
constexpr std::size_t most_tokens = 128;  // drawn; the longest sample has 102

void add_share(RecipeResult& result, const std::string& row, const std::string& column,
               double share, std::optional<tasks::Interval> interval) {
  Row& added = result.rows.emplace_back(Row{row, column, 100 * share});
  if (!interval) return;
  added.low = 100 * std::max(0.0, interval->low);
  added.high = 100 * std::min(1.0, interval->high);
}

/// The head's share of attention on the reference, and what the model makes of it.
void add_length(RecipeResult& result, const std::string& row, const AttentionMeasures& measures,
                const HeadScore& chosen) {
  const auto head = std::ranges::find_if(measures.heads, [&](const HeadScore& h) {
    return h.layer == chosen.layer && h.head == chosen.head;
  });
  const auto entropy = std::ranges::find_if(measures.entropies, [&](const HeadEntropy& h) {
    return h.layer == chosen.layer && h.head == chosen.head;
  });
  add_share(result, row, "head on the reference, %", head->score(),
            tasks::mean_interval(head->rows));
  result.rows.push_back({row, "head's entropy, nats", entropy->entropy});
  double right = 0, asked = 0, exact = 0;
  for (const LengthScores& at : measures.lengths) {
    right += static_cast<double>(at.right);
    asked += static_cast<double>(at.asked);
    exact += static_cast<double>(at.exact);
  }
  const auto samples = static_cast<double>(measures.samples);
  add_share(result, row, "tokens right, %", right / asked, tasks::wilson(right, asked));
  add_share(result, row, "answers right, %", exact / samples, tasks::wilson(exact, samples));
}

RecipeResult figure1(const RecipeOptions& options) {
  RecipeResult result;
  const AlgorithmicTask& reversal = algorithmic_task("reversal");
  const std::vector<GridRun> runs{learned_run(reversal, 0, options)};
  result.stopped = !train_runs(runs, options, beside_attentionspan());
  if (result.stopped) return result;

  const LoadedRun loaded = load_learned(runs[0], options);
  const EvaluationOptions samples = fresh_samples(measured_samples(options), options);
  const auto in_distribution = scored_task(loaded.config, "train");
  const HeadScore chosen = rank_heads(*loaded.model, *in_distribution, samples).front();
  const std::vector<SweepAxis> axes{parse_axis(lengths)};
  std::string maps;
  for (const SweepPoint& point : sweep_points(loaded.config, axes)) {
    const std::string row = text(reversal.title, ", ", name_of(point, axes));
    const AttentionMeasures measures = measure_attention(*loaded.model, *point.task, samples);
    add_length(result, row, measures, chosen);
    Rng rng(samples.seed, Purpose::evaluation, 0, 0);
    maps += head_picture(*loaded.model, *point.task, point.task->sample(rng, 0), chosen,
                         most_tokens, row);
  }
  result.sections.emplace_back(
      "The head",
      html::colour_scale(1, "weight of a column's token for a row's") + side_by_side(maps));
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text(
          "Layer ", chosen.layer, ", head ", chosen.head,
          " has most attention on the task's reference in distribution (strings of up to 10). For "
          "each length, of ",
          samples.samples,
          " samples: the mean over predicted characters of its attention on the one that is asked "
          "for, with Student's 95% interval over characters, which are not independent within a "
          "sample; the mean entropy of its rows; tokens and answers right under teacher forcing, "
          "with Wilson's interval. The reference is outlined in the pictures, of one sample each. "
          "The paper shows its figure for a fine-tuned model and prints no numbers: the diagonal "
          "holds in distribution and scatters beyond it, without becoming less sharp. ",
          learned_model(options), how_optimized(options))));
  result.runs = run_paths(runs, options, beside_attentionspan());
  return result;
}

const RegisterRecipe recipe{
    {.id = "attentionspan/fig1",
     .summary = "the head that reverses strings, in distribution and beyond it",
     .scales = {{Scale::smoke, "a small model: a minute on 2 cores"},
                {Scale::laptop, "width 128: ten minutes on 2 cores by estimate"},
                {Scale::paper, "width 512; for a GPU"}},
     .run = figure1,
     .takes = {"model", "optimizer"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_fig1
