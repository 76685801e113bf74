#include "apps/recipes/hinting.h"
#include "core/error.h"

/// Task hinting, Figures 3.2 to 3.11: accuracy and edit distance of sorting models against length,
/// for different training-set sizes, depths, hints and repetitions.
namespace longhand::app::hinting_figures {
namespace {

struct Line {
  std::string name;  // name in the legend and in the table
  HintingModel model;
  // The accuracy that the paper prints, by length. Other lengths are not in the map.
  std::map<std::int64_t, double> paper = {};
};

struct Figure {
  std::string id, summary, caption;
  std::vector<Line> (*lines)(Scale);
  bool repeated = false;   // true: the test inputs have repeated numbers
  std::int64_t seeds = 0;  // default runs per model; 0: the default of the scale
};

std::vector<HintingModel> models_of(const Figure& figure, Scale scale) {
  std::vector<HintingModel> models;
  for (const Line& line : figure.lines(scale)) models.push_back(line.model);
  return models;
}

/// Adds the accuracy of every model at every tested length, and charts of accuracy and edit
/// distance against the length.
void make(const Figure& figure, const RecipeOptions& options, RecipeResult& result) {
  const HintingTests tests = hinting_tests(options.scale);
  std::vector<SweepAxis> axes{
      parse_axis("length=" + (figure.repeated ? tests.repeated_lengths : tests.lengths))};
  // In the paper, each number of an input occurs r = 2 to 5 times. This recipe adds r = 1. Then no
  // number is repeated, and a model sorts correctly if it always outputs the next greater number.
  if (figure.repeated) axes.push_back(parse_axis("repeat=1..5"));
  std::vector<std::pair<std::string, ScoredRuns>> scored;
  for (const Line& line : figure.lines(options.scale)) {
    auto runs = score_hinting(line.model, axes, options);
    for (std::size_t p = 0; p < runs[0].size(); ++p) {
      const SweepPoint& point = runs[0][p];
      // The paper's results for lengths 50 and 100 are shown at the two lengths in tests.columns.
      // At the smallest scale, these two lengths are shorter.
      std::optional<double> paper;
      const auto length = std::stoll(point.values[0]);
      for (std::size_t i = 0; i < tests.columns.size(); ++i) {
        const auto printed = line.paper.find(i == 0 ? 50 : 100);
        if (length == tests.columns[i] && printed != line.paper.end()) paper = printed->second;
      }
      const std::string column = figure.repeated ? text("rep(", length, ", ", point.values[1], ")")
                                                 : text("length ", length);
      add_share(result, line.name, column, runs, p, figure.repeated ? std::nullopt : paper);
    }
    scored.emplace_back(line.name, std::move(runs));
  }
  std::string content =
      html::figure(model_chart(scored, axes, "sequences"),
                   figure.caption + ": share of sequences sorted without a mistake");
  content += html::figure(model_chart(scored, axes, "edit-distance"),
                          "Mean edit distance between the prediction and the right answer");
  result.sections.emplace_back("Against the length", content);
  add_notes(result, how_scored(options), options);
}

std::vector<Line> by_set(const std::string& hint,
                         const std::map<std::string, std::map<std::int64_t, double>>& paper) {
  std::vector<Line> lines;
  for (const char* set : {"1M", "10M", "40M", "160M"}) {
    Line line{.name = set, .model = {.hint = hint, .set = set}};
    if (const auto printed = paper.find(set); printed != paper.end()) line.paper = printed->second;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<Line> by_set_without(Scale) {
  return by_set("none", {{"1M", {{50, 0.64}}}, {"160M", {{50, 0.89}, {100, 0.0}}}});
}

std::vector<Line> by_set_with(Scale) {
  return by_set("successor", {{"160M", {{50, 0.992}, {100, 0.524}}}});
}

std::vector<Line> by_depth(Scale scale) {
  std::vector<int> depths{2, 4, 8, 12};
  if (scale != Scale::paper) depths = {2, 4};
  std::vector<Line> lines;
  for (const int depth : depths) {
    lines.push_back({.name = text("depth ", depth), .model = {.set = "1M", .layers = depth}});
  }
  lines[0].paper = {{50, 0.64}};
  return lines;
}

std::vector<Line> with_and_without(Scale) {
  return {{.name = "hinting",
           .model = {.hint = "successor", .repetitions = true},
           .paper = {{100, 0.926}}},
          {.name = "no hinting", .model = {.repetitions = true}, .paper = {{100, 0.0}}}};
}

std::vector<Line> by_reading(Scale) {
  return {{.name = "the next greater number",
           .model = {.hint = "successor", .repetitions = true},
           .paper = {{100, 0.926}}},
          {.name = "a copy, where there is one",
           .model = {.hint = "successor", .repetitions = true, .copies = true},
           .paper = {{100, 0.926}}}};
}

/// Models without hints, with standard and with tempered softmax. For one million samples and
/// length 100, the paper's text states the accuracies 0 (standard) and 0.42 (tempered).
std::vector<Line> by_set_and_temper(Scale) {
  std::vector<Line> lines;
  for (const bool tempered : {false, true}) {
    for (Line line : by_set("none", {})) {
      line.model.tempered = tempered;
      if (line.name == "1M") line.paper = {{100, tempered ? 0.42 : 0.0}};
      if (line.name == "160M")
        line.paper = {{50, tempered ? 0.994 : 0.89}, {100, tempered ? 0.452 : 0.0}};
      line.name += tempered ? ", tempered" : ", standard";
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<Line> by_positions(Scale) {
  HintingModel learned, fixed;
  learned.positions = "learned";
  fixed.positions = "sinusoidal";
  return {{.name = "none", .model = {}, .paper = {{50, 0.89}, {100, 0.0}}},
          {.name = "learned", .model = learned},
          {.name = "fixed", .model = fixed}};
}

std::vector<Line> by_hint(Scale) {
  return {
      {.name = "no hint", .model = {}, .paper = {{50, 0.89}, {100, 0.0}}},
      {.name = "successor", .model = {.hint = "successor"}, .paper = {{50, 0.992}, {100, 0.524}}},
      {.name = "count", .model = {.hint = "count"}},
      {.name = "fill", .model = {.hint = "fill"}},
      {.name = "all three", .model = {.hint = "all"}}};
}

RegisterRecipe figure_recipe(const Figure& figure) {
  return RegisterRecipe(
      hinting_recipe({.id = figure.id,
                      .summary = figure.summary,
                      .models = [figure](Scale scale) { return models_of(figure, scale); },
                      .report = [figure](const RecipeOptions& options,
                                         RecipeResult& result) { make(figure, options, result); },
                      .seeds = figure.seeds}));
}

const RegisterRecipe figures[] = {
    figure_recipe({"hinting/fig3.2", "sorting without hints, by the size of the training set",
                   "Without hints", by_set_without}),
    figure_recipe(
        {"hinting/fig3.3", "sorting without hints, by depth", "Without hints, 1M", by_depth}),
    figure_recipe({"hinting/fig3.5", "sorting with the successor hint, by the size of the set",
                   "With the successor hint", by_set_with}),
    figure_recipe(
        {"hinting/fig3.6",
         "hint against no hint at growing lengths: accuracy, and edit distance (Fig. 3.7)",
         "A tenth of the training inputs with repetitions", with_and_without}),
    figure_recipe({"hinting/fig3.8",
                   "hint against no hint on rep(i, r): accuracy, and edit distance (Fig. 3.9)",
                   "Numbers repeated r times", with_and_without, true}),
    figure_recipe({"hinting/tempered",
                   "sorting without hints, standard and tempered softmax, by the size of the set",
                   "Without hints", by_set_and_temper}),
    figure_recipe({"hinting/positions",
                   "sorting without hints, with no, learned and fixed positions (Appendix B)",
                   "Positions", by_positions}),
    figure_recipe({"hinting/readings",
                   "the successor hint read in two ways: the next greater number, or a number's "
                   "copy where it has one",
                   "Two readings of the successor hint", by_reading, false, 1}),
    figure_recipe({"hinting/fig3.11", "sorting with each of the hints and with all of them",
                   "Hints compared", by_hint}),
};

}  // namespace
}  // namespace longhand::app::hinting_figures
