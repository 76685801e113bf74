#include <algorithm>
#include <array>
#include <cmath>

#include "apps/recipes/hinting.h"
#include "apps/run/inspection.h"
#include "core/error.h"

/// Models that learn with the successor hint sort wrongly because they omit repeated numbers. This
/// recipe compares loss, probabilities and attention at two kinds of places in the output: where
/// the next number equals the current one, and where it is greater.
namespace longhand::app::hinting_copies {
namespace {

struct Line {
  std::string name;
  HintingModel model;
};

std::vector<Line> lines() {
  const HintingModel plain{.repetitions = true};
  HintingModel hinted = plain, copies = plain;
  hinted.hint = copies.hint = "successor";
  copies.copies = true;
  return {
      {"no hint", plain}, {"next greater number", hinted}, {"a copy where there is one", copies}};
}

/// The run of a model with a fifth of the scale's steps. After so few steps, models with hints have
/// learned successors but not yet repetitions.
GridRun run_of(const HintingModel& model, const RecipeOptions& options, std::int64_t number) {
  GridRun run = hinting_run(model, options, number);
  const std::int64_t steps = run.last_step() / 5;
  run.config.set("training.steps", std::to_string(steps));
  run.name += text("-", steps, "-steps");
  return run;
}

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < hinting_seeds(options); ++number) {
    for (const Line& line : lines()) runs.push_back(run_of(line.model, options, number));
  }
  return runs;
}

/// Statistics over the output places of one kind. The kinds are: places where the next number
/// equals the current one, and places where it is the next greater one. The place of the first
/// output number belongs to neither kind.
struct Kind {
  std::int64_t count = 0, right = 0;
  // Sums over the places. loss: the loss; copy: the probability of repeating the current number.
  double loss = 0, copy = 0;
  // For each head, sums of its attention over the places. own: to copies of the current number in
  // the input; greater: to the next greater number in the input; present: to the current number in
  // the output.
  std::vector<double> own = {}, greater = {}, present = {};
};
// Statistics of the two kinds of places. [0]: the next number equals the current one; [1]: it is
// the next greater one.
using Kinds = std::array<Kind, 2>;

/// The sum of a head's attention weights from token `row` to the tokens in [begin, end) that equal
/// `number`.
double attention_on(const HeadView& head, std::span<const std::int32_t> tokens, std::size_t row,
                    std::size_t begin, std::size_t end, std::int32_t number) {
  double sum = 0;
  for (std::size_t j = begin; j < end; ++j) {
    if (tokens[j] == number) sum += head.weights[row * tokens.size() + j];
  }
  return sum;
}

void count_kinds(nn::Decoder& model, const tasks::Sample& sample, Kinds& kinds) {
  const std::span<const std::int32_t> tokens = sample.tokens;
  const nn::Input input = nn::make_input(model.backend(), tokens);
  const std::vector<HeadView> heads = look_inside(model, input);
  const Tensor all = model.logits(model.features(input)).value();
  const std::vector<double> logits = all.to_doubles();
  const auto classes = static_cast<std::size_t>(all.columns());
  const auto mark = static_cast<std::size_t>(sample.asked.front());
  for (std::size_t row = mark + 1; row + 1 < tokens.size(); ++row) {
    const std::int32_t present = tokens[row], wanted = tokens[row + 1];
    const auto later =
        std::ranges::find_if(tokens.subspan(row), [&](std::int32_t n) { return n > present; });
    if (later == tokens.end()) break;  // no greater number is left
    const std::int32_t greater = *later;
    Kind& kind = kinds[wanted == present ? 0 : 1];
    const auto here = std::span(logits).subspan(row * classes, classes);
    const double most = std::ranges::max(here);
    double sum = 0;
    for (const double logit : here) sum += std::exp(logit - most);
    const auto probability = [&](std::int32_t number) {
      return std::exp(here[static_cast<std::size_t>(number)] - most) / sum;
    };
    ++kind.count;
    kind.right += std::ranges::max_element(here) - here.begin() == wanted;
    kind.loss -= std::log(std::max(probability(wanted), 1e-30));
    kind.copy += probability(present);
    for (std::vector<double>* list : {&kind.own, &kind.greater, &kind.present})
      list->resize(heads.size());
    for (std::size_t h = 0; h < heads.size(); ++h) {
      kind.own[h] += attention_on(heads[h], tokens, row, 0, mark, present);
      kind.greater[h] += attention_on(heads[h], tokens, row, 0, mark, greater);
      kind.present[h] += attention_on(heads[h], tokens, row, mark + 1, row + 1, present);
    }
  }
}

Kinds measure(const LoadedRun& run, const RecipeOptions& options) {
  const std::int64_t samples = options.scale == Scale::smoke ? 20 : 300;
  Kinds kinds;
  for_samples(*run.task, {.samples = samples, .seed = hinting_test_seed(options)},
              [&](std::span<const tasks::Sample> some) {
                for (const tasks::Sample& sample : some) count_kinds(*run.model, sample, kinds);
              });
  for (const Kind& kind : kinds) {
    LONGHAND_CHECK(
        kind.count > 0,
        "hinting/copies: expected positions where the next number equals the current number "
        "and positions where the next number is greater, got only one kind");
  }
  return kinds;
}

/// The largest mean attention among the heads of a layer. `sums` has the sum of each head's
/// attention over `count` places.
double greatest(const std::vector<HeadView>& heads, const std::vector<double>& sums,
                std::int64_t layer, std::int64_t count) {
  double most = 0;
  for (std::size_t h = 0; h < sums.size(); ++h) {
    if (heads[h].layer == layer) most = std::max(most, sums[h] / static_cast<double>(count));
  }
  return most;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  constexpr std::array<std::string_view, 2> names{"a copy due", "the next number due"};
  for (const Line& line : lines()) {
    std::vector<Kinds> runs;
    // One view per head of the model. Only the layer number of each view is used.
    std::vector<HeadView> heads;
    for (std::int64_t number = 0; number < hinting_seeds(options); ++number) {
      const LoadedRun run =
          load_finished(run_of(line.model, options, number), options, hinting_recipes());
      runs.push_back(measure(run, options));
      if (heads.empty()) {
        heads = look_inside(*run.model,
                            nn::make_input(run.model->backend(), std::vector<std::int32_t>{1}));
      }
    }
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto add = [&](const std::string& column, auto figure, std::int64_t of = 0) {
        std::vector<double> values;
        for (const Kinds& kinds : runs) values.push_back(figure(kinds[k]));
        add_row(result, text(line.name, ", ", names[k]), column, values, {}, of);
      };
      const auto mean = [](double Kind::*sum) {
        return [sum](const Kind& kind) { return kind.*sum / static_cast<double>(kind.count); };
      };
      add(
          "right",
          [](const Kind& kind) {
            return static_cast<double>(kind.right) / static_cast<double>(kind.count);
          },
          runs.front()[k].count);
      add("loss", mean(&Kind::loss));
      add("probability of the copy", mean(&Kind::copy));
      const std::int64_t layers = heads.back().layer + 1;
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        using Sums = std::vector<double> Kind::*;
        for (const auto& looked : {std::pair<std::string, Sums>("itself in the input", &Kind::own),
                                   {"the next number in the input", &Kind::greater},
                                   {"itself in the output", &Kind::present}}) {
          const Sums sums = looked.second;
          add(text("layer ", layer, " on ", looked.first), [&heads, sums, layer](const Kind& kind) {
            return greatest(heads, kind.*sums, layer, kind.count);
          });
        }
      }
    }
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          text("Inputs as in training, a tenth of them with repetitions. The table counts the "
               "numbers of the output after the first that have a greater number in the input, "
               "separated by the next right number. Loss is the mean negative log-likelihood of "
               "the right number, right is the share of largest logits at the right number, under "
               "teacher forcing. The last columns are the mean attention of the head in each layer "
               "that attends most. Models have a fifth of the scale's steps. ",
               how_intervals(options))));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "hinting/copies",
     .summary =
         "loss, probabilities and attention of hinted models where the next number is a copy",
     .scales =
         {{Scale::smoke, "narrow models, trained for seconds"},
          {Scale::laptop,
           "both readings of the hint and no hint, three seeds: a quarter of an hour on one core"},
          {Scale::paper, "the paper's sizes; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = hinting_recipes()})};

}  // namespace
}  // namespace longhand::app::hinting_copies
