#include "apps/html/chart.h"
#include "apps/recipes/hinting.h"
#include "apps/run/run_report.h"
#include "core/error.h"

/// Task hinting, Tables 1 and 2 (sorting) and 3 (increment): models with standard and with tempered
/// softmax, which multiplies scores by beta ln n, where n is the number of tokens seen.
namespace longhand::app::hinting_tables {
namespace {

struct Cell {
  HintingModel model;
  std::string name;  // name of the column, or of the row in Table 3
  std::vector<double> paper;
};

std::vector<HintingModel> models_of(const std::vector<Cell>& cells) {
  std::vector<HintingModel> models;
  for (const Cell& cell : cells) models.push_back(cell.model);
  return models;
}

std::vector<Cell> sorting_cells(bool hinting) {
  const std::string hint = hinting ? "successor" : "none";
  return {{{.hint = hint},
           "Standard softmax",
           hinting ? std::vector{0.992, 0.524} : std::vector{0.89, 0.0}},
          {{.hint = hint, .tempered = true},
           "Tempered softmax",
           hinting ? std::vector{0.997, 0.648} : std::vector{0.994, 0.452}}};
}

std::vector<Cell> increment_cells() {
  const HintingModel plain{.task = "increment", .set = "1M", .layers = 4};
  HintingModel hinting = plain, tempered = plain;
  hinting.hint = "carry";
  tempered.tempered = true;
  return {{plain, "Standard", {.982, .938, .815, .601, .41, .232, .10, .041, .014, .003}},
          {hinting, "Hinting", {.994, .964, .884, .692, .477, .271, .137, .06, .022, .005}},
          {tempered, "Temp. softmax", {.998, .975, .914, .783, .621, .464, .29, .16, .08, .04}}};
}

/// Charts of the training loss and, for tempered softmax, of the trained factor beta of each layer.
std::string curves(const std::vector<Cell>& cells, const RecipeOptions& options) {
  html::LineChart loss{.x_label = "step", .y_label = "loss", .series = {}, .log_y = true};
  html::LineChart beta{.x_label = "step", .y_label = "beta", .series = {}};
  for (const Cell& cell : cells) {
    const GridRun run = hinting_run(cell.model, options);
    const auto metrics = RunFolder(run_path(run, options, hinting_recipes())).metrics();
    const auto task = run.config.task();
    const std::string_view head = task->heads() > 1 ? task->head_name(0) : "";
    loss.series.push_back(curve(cell.name, metrics, "loss", head));
    for (int layer = 0; cell.model.tempered && layer < cell.model.layers; ++layer) {
      beta.series.push_back(curve(text("layer ", layer), metrics, text("beta ", layer)));
    }
  }
  std::string content = html::figure(html::line_chart(loss), "Loss in training");
  if (!beta.series.empty()) {
    content += html::figure(html::line_chart(beta),
                            "Beta of each layer during training. Scores are multiplied by beta ln "
                            "n, where n is the number of tokens up to the current one");
  }
  return content;
}

void sorting_table(const std::vector<Cell>& cells, const RecipeOptions& options,
                   RecipeResult& result) {
  const auto lengths = hinting_tests(options.scale).columns;
  const SweepAxis axis{.option = "length",
                       .values = {std::to_string(lengths[0]), std::to_string(lengths[1])}};
  for (const Cell& cell : cells) {
    const ScoredRuns runs = score_hinting(cell.model, {axis}, options);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      add_share(result, i == 0 ? "Test Acc. 50" : "Test Acc. 100", cell.name, runs, i,
                cell.paper[i]);
    }
  }
  result.sections.emplace_back("Training", curves(cells, options));
  add_notes(result, how_scored(options), options);
}

void increment_table(const std::vector<Cell>& cells, const RecipeOptions& options,
                     RecipeResult& result) {
  const std::vector<SweepAxis> axes{parse_axis("length=11..20")};
  std::vector<std::pair<std::string, ScoredRuns>> scored;
  for (const Cell& cell : cells) {
    auto runs = score_hinting(cell.model, axes, options);
    for (std::size_t i = 0; i < runs[0].size(); ++i) {
      add_share(result, cell.name, runs[0][i].values[0], runs, i, cell.paper[i]);
    }
    scored.emplace_back(cell.name, std::move(runs));
  }
  result.sections.emplace_back(
      "Accuracy against the number of digits",
      html::figure(model_chart(scored, axes, "sequences"), "Trained on numbers of 2 to 10 digits"));
  result.sections.emplace_back("Training", curves(cells, options));
  add_notes(result, how_scored(options), options);
}

RegisterRecipe table(const std::string& id, const std::string& summary,
                     const std::vector<Cell>& cells,
                     void (*make)(const std::vector<Cell>&, const RecipeOptions&, RecipeResult&)) {
  return RegisterRecipe(
      hinting_recipe({.id = id,
                      .summary = summary,
                      .models = [cells](Scale) { return models_of(cells); },
                      .report = [=](const RecipeOptions& options,
                                    RecipeResult& result) { make(cells, options, result); }}));
}

const RegisterRecipe tables[] = {
    table("hinting/table1",
          "sorting without hints, standard and tempered softmax, at unseen lengths",
          sorting_cells(false), sorting_table),
    table("hinting/table2", "sorting with the successor hint, standard and tempered softmax",
          sorting_cells(true), sorting_table),
    table("hinting/table3", "adding one: standard, with the carry hint, with tempered softmax",
          increment_cells(), increment_table)};

}  // namespace
}  // namespace longhand::app::hinting_tables
