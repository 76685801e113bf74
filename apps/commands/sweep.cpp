#include <algorithm>
#include <iostream>
#include <set>

#include "apps/html/page.h"
#include "apps/html/parallel.h"
#include "apps/html/svg.h"
#include "apps/recipes/grid.h"
#include "apps/run/run_summary.h"
#include "apps/run/training.h"
#include "core/atomic_file.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::app::sweep_command {
namespace {

using Texts = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr std::size_t most_runs = 10'000;

/// A setting and the values it goes through.
struct GridAxis {
  std::string name, key;  // as it was typed, and of config.ini
  Texts values;
};

/// "rate=1e-3,3e-3"; with values that have commas themselves "heads=softmax:4|softmax:3,fal:1".
GridAxis axis_of(const std::string& word, const Config& config) {
  const std::size_t sign = word.find('=');
  if (sign == std::string::npos) {
    wrong_usage("--grid: expected NAME=VALUE,VALUE..., got ", quote(word));
  }
  GridAxis axis{.name = word.substr(0, sign), .key = {}, .values = {}};
  std::string wanted = axis.name;
  std::ranges::replace(wanted, '-', '_');
  Texts known;
  for (const auto& [key, value] : config.settings()) {
    const std::string flag = key.substr(key.find('.') + 1);
    if (key == wanted || flag == wanted) axis.key = key;
    known.push_back(flag);
  }
  if (axis.key.empty() || axis.key == "task.name" || axis.key == "training.seed") {
    wrong_usage("--grid: there is no setting ", quote(axis.name), " to go through",
                did_you_mean(wanted, known));
  }
  const char comma = word.find('|') == std::string::npos ? ',' : '|';
  for (std::size_t begin = sign + 1; begin <= word.size();) {
    const std::size_t end = std::min(word.find(comma, begin), word.size());
    const std::string value = word.substr(begin, end - begin);
    if (value.empty() || std::ranges::count(axis.values, value)) {
      wrong_usage("--grid ", axis.name, ": expected values, each of them once");
    }
    axis.values.push_back(value);
    begin = end + 1;
  }
  return axis;
}

/// A place in the grid, with its runs' scores.
struct GridCell {
  std::vector<std::size_t> choice;  // of each axis
  Texts runs;                       // folders' names
  std::vector<Config> configs;
  std::vector<double> scores;
};

std::string folder_name(const std::vector<GridAxis>& axes, const GridCell& cell,
                        std::int64_t seed) {
  std::string name;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    name += axes[i].name + "-" + axes[i].values[cell.choice[i]] + "-";
  }
  name += "seed-" + std::to_string(seed);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name;
}

std::vector<GridCell> cells_of(const Config& base, const std::vector<GridAxis>& axes,
                               std::int64_t seeds) {
  std::size_t count = 1;
  for (const GridAxis& axis : axes) count = std::min(most_runs + 1, count * axis.values.size());
  if (count * static_cast<std::size_t>(seeds) > most_runs) {
    wrong_usage("--grid: expected at most ", most_runs, " runs");
  }
  std::vector<GridCell> cells;
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    GridCell cell;
    std::size_t rest = i;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      cell.choice.insert(cell.choice.begin(), rest % axis->values.size());
      rest /= axis->values.size();
    }
    for (std::int64_t k = 0; k < seeds; ++k) {
      Config config = base;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        config.set(axes[a].key, axes[a].values[cell.choice[a]], "--grid " + axes[a].name);
      }
      const std::uint64_t seed = base.seed() + static_cast<std::uint64_t>(k);
      config.set("training.seed", std::to_string(seed));
      config.check();
      cell.runs.push_back(folder_name(axes, cell, static_cast<std::int64_t>(seed)));
      cell.configs.push_back(std::move(config));
      LONGHAND_CHECK(names.insert(cell.runs.back()).second, cell.runs.back(),
                     ": two runs of the grid would have this folder");
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

bool is_finished(const fs::path& path) {
  return fs::exists(path / "config.ini") && summarize(path).state == "finished";
}

/// Trains what is not done yet; false when a signal or the time stopped it.
bool train_all(const std::vector<GridCell>& cells, const fs::path& out, GridPart part,
               const TrainingManner& manner) {
  std::vector<std::pair<const Config*, fs::path>> all;
  for (const GridCell& cell : cells) {
    for (std::size_t k = 0; k < cell.runs.size(); ++k) {
      all.emplace_back(&cell.configs[k], out / cell.runs[k]);
    }
  }
  for (const std::size_t i : part_of(all.size(), part)) {
    const auto& [config, path] = all[i];
    RunFolder folder = open_or_create(path, *config);  // refused where it is another run's
    if (is_finished(path)) continue;
    if (manner.is_over()) return false;
    if (!manner.quiet) {
      std::cerr << "run " << i + 1 << " of " << all.size() << ": " << path.string() << '\n';
    }
    if (!train(folder, manner).finished) return false;
  }
  return true;
}

/// Axes of the settings, and one of the score.
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

void report(const Arguments& arguments, const Config& base, const std::vector<GridAxis>& axes,
            std::vector<GridCell> cells, const fs::path& out) {
  const bool less = base.task()->less_is_better();
  std::string metric;
  for (GridCell& cell : cells) {
    for (const std::string& run : cell.runs) {
      const RunSummary summary = summarize(out / run);
      metric = summary.metric;
      LONGHAND_CHECK(summary.value, run, ": has no evaluation: expected evaluate-samples above 0");
      cell.scores.push_back(*summary.value);
    }
  }
  std::ranges::stable_sort(cells, [&](const GridCell& a, const GridCell& b) {
    const double x = mean_over(a.scores).mean, y = mean_over(b.scores).mean;
    return less ? x < y : x > y;
  });
  std::vector<Report::Column> columns;
  Texts header;
  for (const GridAxis& axis : axes) {
    columns.push_back({axis.name, axis.name});
    header.push_back(html::escape(axis.name));
  }
  for (const char* title : {"score", "95% from", "to"}) header.emplace_back(title);
  header.emplace_back("runs");
  columns.push_back({"value", metric, "%.4f"});
  columns.push_back({"low", "95% from", "%.4f"});
  columns.push_back({"high", "to", "%.4f"});
  Report table(columns);
  std::vector<Texts> rows;
  for (const GridCell& cell : cells) {
    MeanOverRuns mean = mean_over(cell.scores);
    if (!less && mean.low) {  // of shares
      mean.low = std::max(0.0, *mean.low);
      mean.high = std::min(1.0, *mean.high);
    }
    Json row = Json::object();
    Texts line;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      row[axes[a].name] = axes[a].values[cell.choice[a]];
      line.push_back(html::escape(axes[a].values[cell.choice[a]]));
    }
    row["value"] = mean.mean;
    row["low"] = mean.low ? Json(*mean.low) : Json();
    row["high"] = mean.high ? Json(*mean.high) : Json();
    row["scores"] = cell.scores;
    row["runs"] = cell.runs;
    line.push_back(html::number(mean.mean));
    line.push_back(mean.low ? html::number(*mean.low) : "-");
    line.push_back(mean.high ? html::number(*mean.high) : "-");
    std::string links;
    for (std::size_t k = 0; k < cell.runs.size(); ++k) {
      links +=
          (k ? ", " : "") + html::link(html::number(cell.scores[k]), cell.runs[k] + "/report.html");
    }
    line.push_back(std::move(links));
    table.add(std::move(row));
    rows.push_back(std::move(line));
  }
  table.set("metric", metric);
  table.set("out", out.string());
  table.print(std::cout, arguments.json());
  html::Page page("sweep of " + base.kind().name,
                  text(cells.size(), " places in the grid, ", cells[0].runs.size(), " seeds each"));
  page.add("Scores", html::table(header, rows) +
                         html::paragraph(metric + (less ? ", less is better; " : "; ") +
                                         "means over seeds, intervals by Student's t."));
  page.add("Settings and scores",
           html::figure(picture_of(axes, cells, metric, less),
                        "A line for each run, the stronger the better its score"));
  page.add("Configuration", html::code(base.ini()));
  write_atomically(out / "report.html", page.render());
}

void run(const Arguments& arguments) {
  const Config base = Config::from(arguments);
  std::vector<GridAxis> axes;
  for (const std::string& word : arguments.words("grid")) {
    axes.push_back(axis_of(word, base));
    const auto same = std::ranges::count(axes, axes.back().key, &GridAxis::key);
    if (same > 1) wrong_usage("--grid: ", axes.back().name, " is given twice");
  }
  if (axes.empty()) wrong_usage("--grid is missing: expected NAME=VALUE,VALUE...");
  const fs::path out = arguments.word("out");
  GridPart part;
  if (arguments.given("only")) {
    const auto parsed = parse_part(arguments.word("only"));
    if (!parsed) {
      wrong_usage("--only: expected K/N such as 2/8, got ", quote(arguments.word("only")));
    }
    part = *parsed;
  }
  std::vector<GridCell> cells = cells_of(base, axes, arguments.integer("seeds", 1, 1000));
  if (arguments.flag("list-runs")) {
    for (const GridCell& cell : cells) {
      for (const std::string& name : cell.runs) std::cout << (out / name).string() << '\n';
    }
    return;
  }
  Folder::make(out);
  const bool whole = train_all(cells, out, part, manner_from(arguments));
  const bool all_done = whole && std::ranges::all_of(cells, [&](const GridCell& cell) {
                          return std::ranges::all_of(cell.runs, [&](const std::string& name) {
                            return is_finished(out / name);
                          });
                        });
  if (all_done) return report(arguments, base, axes, std::move(cells), out);
  if (arguments.json()) std::cout << Json{{"out", out.string()}, {"finished", false}} << '\n';
  if (!arguments.flag("quiet")) {
    std::cerr << "not all runs are done; the same command goes on with them\n";
  }
}

const Register command{
    {.name = "sweep",
     .summary = "trains a grid of runs and tells which settings score best",
     .usage = {"--grid NAME=VALUE,VALUE... [--grid ...] [--seeds N] --out DIR [flags of train]"},
     .options = join(
         {{"grid", "NAME=LIST", "a setting and its values; by | where they have commas", {}, true},
          {"seeds", "N", "runs of each place in the grid, by seeds from --seed on", "1"},
          {"out", "DIR", "the folder of the runs and of report.html"},
          {"config", "FILE", "a config.ini whose settings flags may override"},
          {"only", "K/N", "train only the K-th of N parts of the runs"},
          {"list-runs", "", "print the runs' folders and stop"}},
         join(manner_options(), join(config_options(), {json_option()}))),
     .examples =
         {"sweep --task sorting --steps 300 --grid rate=1e-3,3e-3 --grid layers=2,4 --seeds 3 "
          "--out runs/sorting-sweep"},
     .notes =
         "Each run is what `longhand train` with these flags would be. Stopped, by Ctrl-C or\n"
         "--max-minutes, the same command goes on where it was; with --only several processes\n"
         "or machines share the runs, and whoever ends last writes the report.",
     .run = run}};

}  // namespace
}  // namespace longhand::app::sweep_command
