#include "apps/html/chart.h"
#include "apps/recipes/hinting.h"
#include "apps/run/probe.h"
#include "core/error.h"

/// Task hinting, section 4: what a model that sorts holds in its residual stream.
namespace longhand::app {
namespace {

const std::map<Scale, std::string> scales{{Scale::smoke,
                                           "runs of the other recipes at this scale, "
                                           "trained if they are not there"},
                                          {Scale::laptop, "the same with its small models"},
                                          {Scale::paper, "the paper's sizes; for a GPU"}};

// Figures 4.12 to 4.14.

std::vector<HintingModel> standard_model() { return {{}}; }

RecipeResult projections(const RecipeOptions& options) {
  RecipeResult result;
  const auto models = standard_model();
  result.stopped = !train_runs(hinting_runs(models, options), options, beside_hinting());
  if (result.stopped) return result;
  const LoadedRun loaded = load_hinting(models[0], options);
  const auto tokens = loaded.task->vocabulary().encode("5 17 43 78 92 ⊥ 5 17 43 78 92");
  struct Look {
    std::int64_t position;
    std::string name, what;
  };
  const Look looks[] = {
      {2, "token 43 at position 2", "Figure 4.12: in the input, a copy of itself"},
      {8, "token 43 at position 8", "Figure 4.13: in the output, itself and its successor 78"},
      {5, "delimiter at position 5", "Figure 4.14: the delimiter, the least number 5"}};

  const nn::Batch batch{.tokens = tokens, .lengths = {static_cast<std::int32_t>(tokens.size())}};
  const Bases bases = bases_of(*loaded.model);
  const auto all = project(*loaded.model, batch, bases);
  // Ranks: 1 is the largest product.
  const auto add = [&](std::int64_t position, std::int32_t token, std::int64_t layer, Place place,
                       bool encoder) {
    const Projection& projection =
        all[static_cast<std::size_t>(2 * layer) + (place == Place::after_mlp)];
    const Tensor& products = encoder ? projection.encoder : projection.decoder;
    const auto values = products.to_doubles();
    const auto row = values.begin() + position * products.columns();
    const auto greater = std::count_if(row, row + products.columns(),
                                       [&](double value) { return value > row[token]; });
    const tasks::Vocabulary& words = loaded.task->vocabulary();
    result.rows.push_back(
        {.row = text("position ", position, ", layer ", layer,
                     place == Place::before_mlp ? " before" : " after", " the MLP, ",
                     encoder ? "encoder" : "decoder", " basis: ", words.text(token)),
         .column = "rank",
         .value = static_cast<double>(1 + greater)});
  };
  add(2, 43, 0, Place::before_mlp, true);
  add(8, 43, 1, Place::before_mlp, false);
  add(8, 78, 1, Place::before_mlp, false);
  add(8, 78, 1, Place::after_mlp, false);
  add(5, 5, 0, Place::before_mlp, false);
  const auto orthogonal = [&](const std::string& row, const Cosines& cosines) {
    for (const auto& [column, value] :
         {std::pair{"mean |cos|", cosines.mean}, {"largest |cos|", cosines.largest}}) {
      result.rows.push_back({.row = row, .column = column, .value = value, .in_table = false});
    }
  };
  orthogonal("encoder basis", cosines_within(bases.encoder));
  orthogonal("decoder basis", cosines_within(bases.decoder));
  orthogonal("encoder with decoder", cosines_between(bases.encoder, bases.decoder));

  result.sections.emplace_back("Near-orthogonality", bases_table(bases));
  for (const Look& look : looks) {
    result.sections.emplace_back(
        look.name, html::paragraph(look.what + ". Products of the residual stream with the rows of "
                                               "the embedding (encoder basis) and of the output "
                                               "layer (decoder basis), a bar for each token.") +
                       projection_pictures(*loaded.model, *loaded.task, tokens, look.position));
  }
  add_notes(result,
            html::paragraph("Input 5 17 43 78 92 ⊥ and its sorted output. A row of the table says "
                            "where in the network the product with a token's vector is ranked: "
                            "rank 1 is the largest. The paper prints pictures, no numbers."),
            models, options);
  return result;
}

// Figures 4.15 and 4.16.

std::vector<HintingModel> hint_and_none() {
  return {{.hint = "successor", .repetitions = true}, {.repetitions = true}};
}

RecipeResult mechanisms(const RecipeOptions& options) {
  RecipeResult result;
  const auto models = hint_and_none();
  result.stopped = !train_runs(hinting_runs(models, options), options, beside_hinting());
  if (result.stopped) return result;
  const HintingTests tests = hinting_tests(options.scale);
  const SweepAxis axis = parse_axis("length=" + tests.lengths);
  html::LineChart minimum{.x_label = "length", .y_label = "share", .series = {}};
  minimum.y_low = 0;
  minimum.y_high = 1;
  html::LineChart successor = minimum;
  for (const HintingModel& model : models) {
    const std::string name = model.hint == "none" ? "no hinting" : "hinting";
    const LoadedRun loaded = load_hinting(model, options);
    html::Series found{.name = name, .points = {}, .marks = true};
    html::Series followed = found;
    for (const SweepPoint& point : sweep_points(loaded.config, {axis})) {
      const Mechanisms counts = sorting_mechanisms(
          *loaded.model, *point.task, {.samples = tests.samples, .seed = options.seed + 1});
      const auto add = [&](html::Series& series, const std::string& mechanism, std::int64_t hits,
                           std::int64_t count) {
        const tasks::Metric metric{.name = {}, .sum = static_cast<double>(hits), .count = count};
        const Row row =
            share_row(name + ", " + mechanism, text("length ", point.values[0]), metric);
        series.points.push_back({std::stod(point.values[0]), row.value, row.low, row.high});
        result.rows.push_back(row);
      };
      add(found, "min", counts.minimum_hits, counts.minimum_count);
      add(followed, "Identity+Successor", counts.successor_hits, counts.successor_count);
    }
    minimum.series.push_back(std::move(found));
    successor.series.push_back(std::move(followed));
  }
  result.sections.emplace_back(
      "Finding the minimum",
      html::figure(
          html::line_chart(minimum),
          "Figure 4.15: after the first attention the delimiter's largest product with the "
          "decoder basis is that of the least number"));
  result.sections.emplace_back(
      "Identity+Successor",
      html::figure(html::line_chart(successor),
                   "Figure 4.16: after the second attention a number of the output has its two "
                   "largest products with itself and the next greater one; numbers that no greater "
                   "one follows are left out"));
  add_notes(result,
            html::paragraph(text("Shares over ", tests.samples,
                                 " fresh sequences at each length, all tokens given, with Wilson's "
                                 "95% intervals.")),
            models, options);
  return result;
}

const RegisterRecipe figure12{
    {.id = "hinting/fig4.12",
     .summary = "the residual stream of a model that sorts, on the encoder "
                "and decoder bases (Figs. 4.12 to 4.14)",
     .scales = scales,
     .run = projections,
     .runs = [](const RecipeOptions& options) { return hinting_runs(standard_model(), options); }}};
const RegisterRecipe figure15{
    {.id = "hinting/fig4.15",
     .summary = "how often the two mechanisms of sorting are found inside, "
                "with and without hint (Figs. 4.15 and 4.16)",
     .scales = scales,
     .run = mechanisms,
     .runs = [](const RecipeOptions& options) { return hinting_runs(hint_and_none(), options); }}};

}  // namespace
}  // namespace longhand::app
