#include "apps/recipes/matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "apps/html/chart.h"
#include "apps/html/heat_table.h"
#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "core/atomic_file.h"

namespace longhand::app::matrix {
namespace {

/// The finished cells among the selected ones. A cell is a mechanism on a task.
struct Made {
  const RecipeOptions& options;
  Choice choice;
  std::map<std::string, CellResult> results = {};  // key: name of the cell

  explicit Made(const RecipeOptions& made_with) : options(made_with), choice(choose(made_with)) {
    for (const Cell& cell : cells(choice)) {
      if (auto result = read_cell(cell, options)) results.emplace(cell.name(), *std::move(result));
    }
  }
  const CellResult* of(const MatrixTask& task, const Mechanism& mechanism) const {
    const auto found = results.find(Cell{&mechanism, &task}.name());
    return found == results.end() ? nullptr : &found->second;
  }
  /// The scores of guessing. They depend only on the task, so they are read from the first
  /// mechanism whose cell is finished.
  const std::vector<double>* guessed(const MatrixTask& task) const {
    for (const Mechanism* mechanism : choice.mechanisms) {
      if (const CellResult* result = of(task, *mechanism)) return &result->guessed;
    }
    return nullptr;
  }
};

/// A share in percent: 0.9987 gives "99.9". The result is "100" only if everything is right, and
/// "0" only if nothing is.
std::string percent(double share) {
  const double p = 100 * share, whole = std::round(p);
  const bool near_an_end = (p > 99 && p < 100) || (p > 0 && p < 1);
  if (!near_an_end) return html::number(whole);
  return html::number(p > 50 ? std::min(99.9, std::round(p * 10) / 10)
                             : std::max(0.1, std::round(p * 10) / 10));
}

void add_rows(const Made& made, RecipeResult& result) {
  if (seeds(made.options) > 1) result.bounds = Bounds::seeds;
  for (const Cell& cell : cells(made.choice)) {
    const CellResult* const of = made.of(*cell.task, *cell.mechanism);
    if (!of) continue;
    const std::string name = text(cell.task->title, ", ", cell.mechanism->title);
    const std::vector<Test> tests = tests_of(*cell.task);
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const std::vector<double> values = of->scores(i);
      Row row = row_of(name, tests[i].name, values, {}, of->runs.front().scores[i].of);
      if (values.size() > 1) {
        Row mean = row;
        mean.column += ", mean";
        mean.in_table = false;
        result.rows.push_back(mean);
        row.value = median(values);
        row.low = std::ranges::min(values);
        row.high = std::ranges::max(values);
      } else if (result.bounds == Bounds::seeds) {
        // The table shows ranges over seeds. A single seed has no range, so the confidence interval
        // of its score is removed.
        row.low = row.high = {};
      }
      result.rows.push_back(std::move(row));
      for (std::size_t run = 0; values.size() > 1 && run < values.size(); ++run) {
        Row single = row_of(name, text(tests[i].name, ", run ", run + 1), {&values[run], 1}, {},
                            of->runs[run].scores[i].of);
        single.in_table = false;
        result.rows.push_back(std::move(single));
      }
    }
    const auto add = [&](const char* column, double value, bool whole) {
      result.rows.push_back(
          {.row = name, .column = column, .value = value, .in_table = false, .whole = whole});
    };
    add("parameters", static_cast<double>(of->parameters), true);
    add("operations by token", of->operations, true);
    add("seconds by token", of->seconds(), false);
    add("rate", std::stod(of->rate), false);
  }
}

html::HeatTable::Cell heat(const MatrixTask& task, const Mechanism& mechanism,
                           const CellResult* result, std::size_t test) {
  if (!result) return {.text = "", .title = "not run"};
  const std::vector<double> values = result->scores(test);
  const double value = median(values), guess = result->guessed[test];
  html::HeatTable::Cell cell{.text = percent(value), .share = (value - guess) / (1 - guess)};
  if (values.size() > 1) cell.small = percent(std::ranges::min(values));
  if (result->hopeless()) cell.text += "†";
  cell.title = text(task.title, ", ", mechanism.title, ": ");
  for (const CellRun& run : result->runs) {
    const CellRun::Score& score = run.scores[test];
    const auto interval =
        tasks::wilson(score.value * static_cast<double>(score.of), static_cast<double>(score.of));
    cell.title += text("seed ", run.seed, " ", percent(score.value), " [", percent(interval.low),
                       ", ", percent(interval.high), "], ");
  }
  const std::string_view said = published(task, mechanism);
  cell.title += said.empty() ? "no published figure was found" : text("published: ", said);
  return cell;
}

/// Tables of the scores on all tasks. Each table has as many tasks as fit on a page.
std::string heat_tables(const Made& made) {
  constexpr std::size_t beside = 4;
  std::string all;
  const auto& tasks = made.choice.tasks;
  for (std::size_t first = 0; first < tasks.size(); first += beside) {
    const std::span some = std::span(tasks).subspan(first, std::min(beside, tasks.size() - first));
    html::HeatTable table;
    html::HeatTable::Row guessing{"guessing", {}};
    for (const MatrixTask* task : some) {
      html::HeatTable::Group& group = table.groups.emplace_back();
      group.name = task->title;
      const std::vector<double>* const guessed = made.guessed(*task);
      for (const Test& test : tests_of(*task)) {
        guessing.cells.push_back(
            {.text = guessed ? percent((*guessed)[group.columns.size()]) : ""});
        group.columns.push_back(test.name);
      }
    }
    for (const Mechanism* mechanism : made.choice.mechanisms) {
      html::HeatTable::Row& row = table.rows.emplace_back();
      row.name = mechanism->title;
      for (const MatrixTask* task : some) {
        for (std::size_t i = 0; i < tests_of(*task).size(); ++i) {
          row.cells.push_back(heat(*task, *mechanism, made.of(*task, *mechanism), i));
        }
      }
    }
    table.rows.push_back(std::move(guessing));
    all += html::heat_table(table);
  }
  return all;
}

std::string charts(const Made& made) {
  std::string all;
  for (const MatrixTask* task : made.choice.tasks) {
    if (!task->files.empty()) continue;  // for files, the lengths of the samples are not known
    html::LineChart chart{.x_label = text("times ", task->trained(made.options.scale), ' ',
                                          task->length, ", the longest in training"),
                          .y_label = "score",
                          .series = {},
                          .log_x = true,
                          .x_marks = {1, 2, 4, 8},
                          .y_low = 0,
                          .y_high = 1};
    const std::vector<Test> tests = tests_of(*task);
    std::size_t number = 0;
    for (const Mechanism* mechanism : made.choice.mechanisms) {
      const CellResult* const result = made.of(*task, *mechanism);
      const std::size_t hue = number++;
      if (!result) continue;
      html::Series& series = chart.series.emplace_back();
      series.name = mechanism->title;
      series.marks = true;
      series.hue = hue;
      series.dashed = hue >= 6;  // there are only six colours
      for (std::size_t i = 0; i < tests.size(); ++i) {
        if (tests[i].factor == 0) continue;
        series.points.push_back({static_cast<double>(tests[i].factor), median(result->scores(i))});
      }
    }
    if (!chart.series.empty()) {
      all += html::figure(line_chart(chart), text(task->title, ": the median over seeds"));
    }
  }
  return all;
}

/// A table with one text per cell of the matrix. Each task is a column.
std::string table_of_cells(const Made& made,
                           const std::function<std::string(const CellResult&)>& figure) {
  std::vector<std::string> header{""};
  for (const MatrixTask* task : made.choice.tasks) header.emplace_back(task->title);
  std::vector<std::vector<std::string>> rows;
  for (const Mechanism* mechanism : made.choice.mechanisms) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(html::escape(mechanism->title));
    for (const MatrixTask* task : made.choice.tasks) {
      const CellResult* const result = made.of(*task, *mechanism);
      row.push_back(result ? html::escape(figure(*result)) : "");
    }
  }
  return html::table(header, rows);
}

std::string costs(const Made& made) {
  return html::paragraph(
             "Microseconds of training per token, and thousands of operations of products and "
             "attention in a step per token (without FAL's search). A tenth of the steps of the "
             "fastest run took less than this time; the machine may have had other work.") +
         table_of_cells(made, [](const CellResult& result) {
           return text(html::number(std::round(result.seconds() * 1e7) / 10), " µs, ",
                       html::number(std::round(result.operations / 1e3)), "k");
         });
}

std::string choices(const Made& made) {
  return html::paragraph(
             "The selected rate, the number of seeds trained with it, how many of them were "
             "stopped early (†) or diverged, and the number of parameters.") +
         table_of_cells(made, [](const CellResult& result) {
           const auto ended = [&](std::string_view end) {
             return std::ranges::count(result.runs, end, &CellRun::end);
           };
           std::string all = result.rate;
           if (result.runs.size() > 1) all += text(", ", result.runs.size(), " seeds");
           if (ended("hopeless") > 0) all += text(", †", ended("hopeless"));
           if (ended("diverged") > 0) all += text(", diverged ", ended("diverged"));
           return all + text(", ", result.parameters);
         });
}

std::string published_figures(const Made& made) {
  std::vector<std::vector<std::string>> rows;
  for (const MatrixTask* task : made.choice.tasks) {
    if (!task->files.empty()) continue;
    std::string none;
    for (const Mechanism* mechanism : made.choice.mechanisms) {
      const std::string_view said = published(*task, *mechanism);
      if (said.empty()) {
        none += text(none.empty() ? "" : ", ", mechanism->name);
      } else {
        rows.push_back({html::escape(task->title), html::escape(mechanism->title),
                        "<span style=\"display:block;text-align:left;white-space:normal\">" +
                            html::escape(said) + "</span>"});
      }
    }
    if (!none.empty()) {
      rows.push_back({html::escape(task->title), html::escape(none),
                      "<span style=\"display:block;text-align:left\">none was found</span>"});
    }
    rows.push_back({html::escape(task->title), "best beyond the training's lengths",
                    "<span style=\"display:block;text-align:left;white-space:normal\">" +
                        html::escape(task->best) + "</span>"});
  }
  return html::paragraph(
             "None of them was measured with this decoder, these lengths or so little training. "
             "They show how far a mechanism has been taken, not what these figures should be.") +
         html::table({"task", "mechanism", "published"}, rows);
}

std::string listed(std::span<const std::string_view> words) {
  std::string all;
  for (const std::string_view word : words) all += text(all.empty() ? "" : ", ", word);
  return all;
}

std::string protocol(const Made& made) {
  const Scale scale = made.options.scale;
  const GridRun first = cell_run(cells(made.choice).front(), rates(scale)[0], 0, made.options);
  const std::int64_t runs = seeds(made.options);
  std::string counted =
      text("All cells use one decoder, in which only heads and positions differ: ",
           first.config.text("model.layers"), " layers of width ", first.config.text("model.width"),
           ", ", first.last_step(), " steps of ", first.config.text("training.batch_tokens"),
           " tokens. The figure is the main metric of the task under teacher forcing. Samples are "
           "as in training (id), or have exactly 2, 4 and 8 times the maximum training length, "
           "and none was seen in training. In the report and in the book the colour shows the "
           "share above guessing, where guessing always answers with the most frequent target. ");
  if (std::ranges::any_of(made.choice.tasks,
                          [](const MatrixTask* t) { return !t->files.empty(); })) {
    counted += "The columns of a task of one's own are its files. ";
  }
  counted += runs == 1 ? "One seed; intervals are Wilson's, 95%. "
                       : text("The median of ", runs,
                              " seeds, and below it the worst. --json prints the figure of each "
                              "seed and the mean with Student's 95% interval. ");
  std::string chosen =
      text("The rate is one of ", listed(rates(scale)), ": the one whose run of the first seed",
           " has the lowest loss on new samples of the training distribution. Longer samples "
           "select nothing: the rate does not depend on them, and the last checkpoint is used.");
  std::string given_up =
      "A run is stopped at half of its steps if the mean loss of the last tenth of them is at "
      "least 95% of the loss of predicting the targets' own frequencies. It is tested in this "
      "state (†).";
  if (runs > 1) {
    given_up +=
        " If the first seed is stopped at every rate, no other seed is trained, so such a cell has "
        "one seed.";
  }
  return html::paragraph(counted) + html::paragraph(chosen) + html::paragraph(given_up);
}

/// The folders of the first seed's runs at every learning rate, and of the other seeds' runs at the
/// selected rate.
std::vector<std::filesystem::path> runs_of(const Made& made) {
  std::vector<std::filesystem::path> all;
  for (const MatrixTask* task : made.choice.tasks) {
    for (const Mechanism* mechanism : made.choice.mechanisms) {
      const CellResult* const result = made.of(*task, *mechanism);
      if (!result) continue;
      for (const auto* runs : {&result->trials, &result->runs}) {
        for (const CellRun& run : *runs) {
          const std::filesystem::path path = made.options.out / run.run;
          if (std::ranges::find(all, path) == all.end()) all.push_back(path);
        }
      }
    }
  }
  return all;
}

void report(const Made& made, RecipeResult& result) {
  result.has_table = true;
  result.runs = runs_of(made);
  add_rows(made, result);
  const auto section = [&](const char* heading, std::string content) {
    result.sections.emplace_back(heading, std::move(content));
  };
  const std::size_t wanted = cells(made.choice).size();
  std::string missing;
  if (made.results.size() < wanted) {
    missing = html::paragraph(
        text(made.results.size(), " of ", wanted, " cells have been run; the others are empty."));
  }
  section("Percent right", missing + heat_tables(made));
  section("What is counted", protocol(made));
  section("By length", charts(made));
  section("What a token costs", costs(made));
  section("Rates and seeds", choices(made));
  section("What is published", published_figures(made));
}

std::vector<GridPiece> pieces(const RecipeOptions& options) {
  std::vector<GridPiece> all;
  for (const Cell& cell : cells(choose(options))) {
    all.push_back({cell.name(), cell_runs(cell, options),
                   [cell, options] { return make_cell(cell, options); }});
  }
  return all;
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  for (const GridPiece& piece : pieces(options)) {
    if (piece.make()) continue;
    result.stopped = true;
    break;
  }
  const Made made(options);
  if (made.results.empty()) return result;
  result.partial = result.stopped;
  report(made, result);
  return result;
}

const RegisterRecipe recipe{
    {.id = "matrix",
     .summary = "mechanisms by tasks in one decoder, on samples 1, 2, 4 and 8 times as long",
     .scales = {{Scale::smoke, "6 mechanisms, 4 tasks, one seed: 4 minutes on one core"},
                {Scale::laptop, "11 mechanisms, 6 tasks, 3 seeds: an hour on one core"},
                {Scale::paper, "all, 4 layers of width 256, 3 seeds; for a GPU or a cluster"}},
     .run = run,
     .pieces = pieces,
     .takes = {"mechanisms", "tasks"}}};

}  // namespace
}  // namespace longhand::app::matrix
