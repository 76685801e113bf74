#include <algorithm>

#include "apps/html/heat_map.h"
#include "apps/html/page.h"
#include "apps/recipes/attentionspan.h"
#include "apps/run/attention_report.h"
#include "apps/run/inspection.h"
#include "apps/run/sweep.h"
#include "tasks/statistics.h"

/// AttentionSpan, Figure 1: the attention of one head of a model that reverses strings, at the
/// trained lengths and at longer ones.
namespace longhand::app::attentionspan_fig1 {
namespace {

constexpr std::string_view lengths = "length=10,20,30,50";
// Maximum number of tokens in a picture. If characters are tokens, samples have at most 102 tokens
// and are shown completely.
constexpr std::size_t most_tokens = 128;

/// Measurements of one run on samples of one length.
struct AtLength {
  // head: the selected head's mean attention on the reference tokens; entropy: the mean entropy of
  // the head's attention, in nats.
  double head = 0, entropy = 0;
  std::optional<tasks::Interval> head_interval = {};
  double right = 0, asked = 0, exact = 0, samples = 0;
};

AtLength at_length(const AttentionMeasures& measures, const HeadScore& chosen) {
  const auto is_chosen = [&](const auto& h) {
    return h.layer == chosen.layer && h.head == chosen.head;
  };
  const auto head = std::ranges::find_if(measures.heads, is_chosen);
  AtLength at{.head = head->score(),
              .entropy = std::ranges::find_if(measures.entropies, is_chosen)->entropy,
              .head_interval = tasks::mean_interval(head->rows),
              .samples = static_cast<double>(measures.samples)};
  for (const LengthScores& of : measures.lengths) {
    at.right += static_cast<double>(of.right);
    at.asked += static_cast<double>(of.asked);
    at.exact += static_cast<double>(of.exact);
  }
  return at;
}

/// Adds the results for samples of one length. `seeds` has the measurements of one run per seed.
void add_length(RecipeResult& result, const std::string& row, std::span<const AtLength> seeds) {
  const auto each = [&](const auto& figure) {
    std::vector<double> values;
    for (const AtLength& at : seeds) values.push_back(figure(at));
    return values;
  };
  const auto first = result.rows.size();
  const auto asked = static_cast<std::int64_t>(seeds.front().asked);
  add_percent(result, row, "head on the reference, %",
              each([](const AtLength& at) { return at.head; }), {}, asked);
  if (const auto& interval = seeds.front().head_interval; seeds.size() == 1 && interval) {
    result.rows[first].low = 100 * std::max(0.0, interval->low);
    result.rows[first].high = 100 * std::min(1.0, interval->high);
  }
  add_row(result, row, "head's entropy, nats", each([](const AtLength& at) { return at.entropy; }),
          {});
  add_percent(result, row, "tokens right, %",
              each([](const AtLength& at) { return at.right / at.asked; }), {}, asked);
  add_percent(result, row, "answers right, %",
              each([](const AtLength& at) { return at.exact / at.samples; }), {},
              static_cast<std::int64_t>(seeds.front().samples));
}

std::vector<Lineage> runs_of(const RecipeOptions& options) {
  return lineages({{algorithmic_task("reversal")}}, options,
                  [&](const auto& task, std::int64_t number) {
                    return std::vector{learned_run(task, number, options)};
                  });
}

RecipeResult figure1(const RecipeOptions& options) {
  RecipeResult result;
  const std::vector<Lineage> all = runs_of(options);
  if (!train_all(all, options, result)) return result;

  const std::vector<GridRun> runs = all.front().of_seeds(0);
  const EvaluationOptions samples = fresh_samples(measured_samples(options), options);
  const std::vector<SweepAxis> axes{parse_axis(lengths)};
  std::vector<std::string> rows;
  std::vector<std::vector<AtLength>> found;  // indexed as found[length][seed]
  std::string maps, heads;
  for (const GridRun& run : runs) {
    const LoadedRun loaded = load_learned(run, options);
    const auto in_distribution = scored_task(loaded.config, "train");
    const HeadScore chosen = rank_heads(*loaded.model, *in_distribution, samples).front();
    heads += text(heads.empty() ? "" : "; ", "seed ", run.config.training().seed, ": layer ",
                  chosen.layer, ", head ", chosen.head);
    const std::vector<SweepPoint> points = sweep_points(loaded.config, axes);
    found.resize(points.size());
    for (std::size_t p = 0; p < points.size(); ++p) {
      const tasks::Task& task = *points[p].task;
      found[p].push_back(at_length(measure_attention(*loaded.model, task, samples), chosen));
      if (&run != &runs.front()) continue;
      rows.push_back(text(all.front().task.title, ", ", name_of(points[p], axes)));
      Rng rng(samples.seed, Purpose::evaluation, 0, 0);
      maps +=
          head_picture(*loaded.model, task, task.sample(rng, 0), chosen, most_tokens, rows.back());
    }
  }
  for (std::size_t p = 0; p < rows.size(); ++p) add_length(result, rows[p], found[p]);

  result.sections.emplace_back(
      "The head",
      html::colour_scale(1, "weight of a column's token for a row's") + side_by_side(maps));
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(text("The figure shows the head with the most attention on the task's "
                           "reference in distribution, for strings of up to 10 characters (",
                           heads, "). For each length, of ", samples.samples,
                           " samples: the mean over predicted characters of the head's attention "
                           "on the character that is copied",
                           runs.size() == 1
                               ? ", with Student's 95% interval over characters, which are not "
                                 "independent within a sample"
                               : "",
                           "; the mean entropy of the head's rows, and the shares of right tokens "
                           "and right answers under teacher forcing. ",
                           how_intervals(std::ssize(runs)),
                           " The reference is outlined in the pictures, which show one sample each",
                           runs.size() == 1 ? "" : ", of the first seed",
                           ". The paper shows its figure for a fine-tuned model and prints no "
                           "numbers: in distribution attention lies on the diagonal, and beyond it "
                           "attention scatters without becoming less sharp. ",
                           learned_model(options), how_optimized(options))));
  return result;
}

const RegisterRecipe recipe{
    {.id = "attentionspan/fig1",
     .summary = "the head that reverses strings, in and out of distribution",
     .scales = {{Scale::smoke, "a small model: a minute on 2 cores"},
                {Scale::laptop,
                 "the model of attentionspan/table6, three seeds: two minutes on one core"},
                {Scale::paper, "width 512; for a GPU"}},
     .run = figure1,
     .pieces = [](const RecipeOptions& options) { return pieces_of(runs_of(options), options); },
     .takes = {"model", "optimizer"}}};

}  // namespace
}  // namespace longhand::app::attentionspan_fig1
