#include "apps/recipes/sweep_report.h"

#include <algorithm>
#include <iostream>

#include "apps/html/chart.h"
#include "apps/html/page.h"
#include "apps/html/parallel.h"
#include "apps/html/svg.h"
#include "apps/recipes/grid.h"
#include "apps/report.h"
#include "apps/run/ranking.h"
#include "core/atomic_file.h"

namespace longhand::app {
namespace {

/// A picture in parallel coordinates with one line per run. It has one axis for each setting of the
/// grid, and one for the score.
std::string picture_of(const std::vector<GridAxis>& axes, const std::vector<GridCell>& cells,
                       const std::string& metric, bool less) {
  double low = cells[0].scores[0], high = low;
  for (const GridCell& cell : cells) {
    for (const double score : cell.scores) low = std::min(low, score), high = std::max(high, score);
  }
  html::ParallelCoordinates picture;
  for (const GridAxis& axis : axes) picture.axes.push_back({axis.name, axis.values});
  picture.axes.push_back(
      {metric, {html::number(low), html::number((low + high) / 2), html::number(high)}});
  for (const GridCell& cell : cells) {
    for (std::size_t k = 0; k < cell.scores.size(); ++k) {
      html::ParallelCoordinates::Line line;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        const auto last = static_cast<double>(axes[a].values.size() - 1);
        line.at.push_back(last > 0 ? static_cast<double>(cell.choice[a]) / last : 0.5);
      }
      const double share = high > low ? (cell.scores[k] - low) / (high - low) : 0.5;
      line.at.push_back(share);
      line.share = less ? 1 - share : share;
      line.title = cell.runs[k] + ": " + html::number(cell.scores[k]);
      picture.lines.push_back(std::move(line));
    }
  }
  std::ranges::stable_sort(picture.lines, {}, &html::ParallelCoordinates::Line::share);
  return html::parallel_coordinates(picture);
}

std::string settings_of(const std::vector<GridAxis>& axes, const GridCell& cell) {
  std::string all;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    all += (a ? ", " : "") + axes[a].name + " " + axes[a].values[cell.choice[a]];
  }
  return all;
}

/// A line chart of the mean scores after each stage of successive halving. It has one line for each
/// combination of settings. The line ends at the last stage that the combination reached.
std::string stages_picture(const std::vector<GridAxis>& axes, const std::vector<GridCell>& cells,
                           const GridStages& stages, const std::string& metric) {
  html::LineChart chart{.x_label = "steps", .y_label = metric, .series = {}, .log_x = true};
  for (const HalvingStage& stage : stages.all) {
    chart.x_marks.push_back(static_cast<double>(stage.steps));
  }
  for (const GridCell& cell : cells) {
    html::Series series{.name = settings_of(axes, cell), .points = {}, .marks = true};
    for (std::size_t k = 0; k < cell.means.size(); ++k) {
      series.points.push_back({chart.x_marks[k], cell.means[k]});
    }
    chart.series.push_back(std::move(series));
  }
  return html::line_chart(chart);
}

/// The mean score over the runs of a cell (a combination of settings), with its interval. `less` is
/// true if lower scores are better. Otherwise the scores are shares, so the interval is clipped to
/// [0, 1].
MeanOverRuns mean_score(const GridCell& cell, bool less) {
  MeanOverRuns mean = mean_over(cell.scores);
  if (!less && mean.low) {
    mean.low = std::max(0.0, *mean.low);
    mean.high = std::min(1.0, *mean.high);
  }
  return mean;
}

/// Number of steps for which each run of a cell (a combination of settings) was trained in total.
std::int64_t steps_of(const GridCell& cell, const GridStages& stages) {
  return stages.all[cell.means.size() - 1].steps;
}

Report table_of(const std::vector<GridAxis>& axes, const std::vector<GridCell>& cells,
                const GridStages& stages, bool less) {
  std::vector<Report::Column> columns;
  for (const GridAxis& axis : axes) columns.push_back({axis.name, axis.name});
  if (stages.all.size() > 1) columns.push_back({"steps", "steps"});
  columns.push_back({"value", stages.score, "%.4f"});
  columns.push_back({"low", "95% from", "%.4f"});
  columns.push_back({"high", "to", "%.4f"});
  Report table(columns);
  for (const GridCell& cell : cells) {
    const MeanOverRuns mean = mean_score(cell, less);
    Json row = Json::object();
    for (std::size_t a = 0; a < axes.size(); ++a) {
      row[axes[a].name] = axes[a].values[cell.choice[a]];
    }
    if (stages.all.size() > 1) {
      row["steps"] = steps_of(cell, stages);
      row["means"] = cell.means;
    }
    row["value"] = mean.mean;
    row["low"] = mean.low ? Json(*mean.low) : Json();
    row["high"] = mean.high ? Json(*mean.high) : Json();
    row["scores"] = cell.scores;
    row["runs"] = cell.runs;
    table.add(std::move(row));
  }
  return table;
}

/// The table of a sweep as HTML, with a link to the report of each run.
std::string html_table(const std::vector<GridAxis>& axes, const std::vector<GridCell>& cells,
                       const GridStages& stages, bool less) {
  Texts header;
  for (const GridAxis& axis : axes) header.push_back(html::escape(axis.name));
  if (stages.all.size() > 1) header.emplace_back("steps");
  for (const char* title : {"score", "95% from", "to", "runs"}) header.emplace_back(title);
  std::vector<Texts> rows;
  for (const GridCell& cell : cells) {
    const MeanOverRuns mean = mean_score(cell, less);
    Texts line;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      line.push_back(html::escape(axes[a].values[cell.choice[a]]));
    }
    if (stages.all.size() > 1) line.push_back(std::to_string(steps_of(cell, stages)));
    line.push_back(html::number(mean.mean));
    line.push_back(mean.low ? html::number(*mean.low) : "-");
    line.push_back(mean.high ? html::number(*mean.high) : "-");
    std::string links;
    for (std::size_t k = 0; k < cell.runs.size(); ++k) {
      links +=
          (k ? ", " : "") + html::link(html::number(cell.scores[k]), cell.runs[k] + "/report.html");
    }
    line.push_back(std::move(links));
    rows.push_back(std::move(line));
  }
  return html::table(header, rows);
}

}  // namespace

void report_sweep(const Config& base, const std::vector<GridAxis>& axes,
                  std::vector<GridCell> cells, const GridStages& stages,
                  const std::filesystem::path& out, bool json) {
  const std::string& metric = stages.score;
  const bool less = tasks::lower_is_better(metric_of(metric));
  const bool halves = stages.all.size() > 1;
  std::ranges::stable_sort(cells, [&](const GridCell& a, const GridCell& b) {
    if (a.means.size() != b.means.size()) return a.means.size() > b.means.size();
    return less ? a.means.back() < b.means.back() : a.means.back() > b.means.back();
  });
  Report table = table_of(axes, cells, stages, less);
  table.set("metric", metric);
  if (halves) {
    Json told = Json::array();
    for (const HalvingStage& stage : stages.all) {
      told.push_back({{"settings", stage.settings}, {"steps", stage.steps}});
    }
    table.set("stages", told);
  }
  table.set("out", out.string());
  table.print(std::cout, json);

  html::Page page("sweep of " + base.kind().name,
                  text(cells.size(), " places in the grid, ", cells[0].runs.size(), " seeds each"));
  page.add("Scores", html_table(axes, cells, stages, less) +
                         html::paragraph(metric + (less ? ", less is better; " : "; ") +
                                         "means over seeds, intervals by Student's t."));
  if (halves) {
    page.add(
        "Who was dropped when",
        html::figure(stages_picture(axes, cells, stages, metric),
                     text("The mean score after each stage; of ", stages.all.size(),
                          " stages. Each stage continues the best settings of the previous one.")));
  }
  page.add("Settings and scores",
           html::figure(picture_of(axes, cells, metric, less),
                        "One line per run; better scores have stronger colours."));
  page.add("Configuration", html::code(base.ini()));
  write_atomically(out / "report.html", page.render());
}

}  // namespace longhand::app
