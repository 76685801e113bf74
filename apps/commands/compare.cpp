#include <algorithm>
#include <iostream>

#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "apps/run/config_mixers.h"
#include "apps/run/ranking.h"
#include "apps/run/run_report.h"
#include "core/atomic_file.h"
#include "core/quote.h"

namespace longhand::app::compare_command {
namespace {

using Texts = std::vector<std::string>;

struct Compared {
  std::string path, name;
  Config config;
  std::vector<Json> metrics;

  /// The value of a setting, or "-" if the run's task has no such setting.
  std::string setting(const std::string& key) const {
    return config.knows(key) ? config.text(key) : "-";
  }
  /// The last value of a loss or score in the run's metrics. Empty if the metrics do not contain
  /// it.
  std::optional<double> last(const std::string& figure) const {
    std::optional<double> value;
    for (const Json& line : metrics) {
      if (const Json* const found = line.find(figure)) value = found->number();
    }
    return value;
  }
};

/// Names each run by its folder's name if all folder names differ, otherwise by its path.
void name(std::vector<Compared>& runs) {
  Texts short_names;
  for (const Compared& run : runs) {
    const auto path = std::filesystem::absolute(run.path).lexically_normal();
    // The name of a path that ends with a slash is empty.
    short_names.push_back((path.has_filename() ? path : path.parent_path()).filename());
  }
  const bool distinct = std::ranges::all_of(short_names, [&](const std::string& one) {
    return !one.empty() && std::ranges::count(short_names, one) == 1;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = distinct ? short_names[i] : runs[i].path;
  }
}

/// True if the setting model.longest, the number of positions, cannot change a result of the run.
/// The setting can change results if positions are learned, if position ids are not 0, 1, 2, ...,
/// or if the task is made from files. For texts it limits the tokens that the model reads at once.
bool ignores_longest(const Config& config) {
  const ModelSettings model = config.model_settings();
  return model.decoder.positions != nn::Positions::learned && config.kind().name != "text" &&
         model.position_ids == tasks::PositionIds::places;
}

/// True if a setting has the same effect in both runs.
bool same_effect(const Config& a, const Config& b, const std::string& key) {
  if (same_setting(a, b, key)) return true;
  const auto trains = [](const Config& config) { return config.training().schedule.steps > 0; };
  if (key.starts_with("training.") && key != "training.steps" && !(trains(a) && trains(b))) {
    return true;
  }
  if (key == "model.longest") return ignores_longest(a) && ignores_longest(b);
  if (key == "model.inner") {
    const auto inner = [&](const Config& config) {
      const nn::DecoderConfig model = config.model_settings().decoder;
      return model.inner == 0 ? 3 * model.width : model.inner;
    };
    return inner(a) == inner(b);
  }
  return false;
}

/// The names of the settings in which the runs differ. Settings of the first run come first, in
/// their order, followed by settings that only later runs have.
Texts differing(const std::vector<Compared>& runs) {
  Texts keys;
  for (const Compared& run : runs) {
    for (const auto& setting : run.config.settings()) {
      const auto& key = setting.first;
      const bool differs = std::ranges::any_of(
          runs, [&](const Compared& other) { return !same_effect(run.config, other.config, key); });
      if (differs && std::ranges::count(keys, key) == 0) keys.push_back(key);
    }
  }
  return keys;
}

/// The name of the score that ranks the runs. The candidates are the ranking_scores() of each run.
/// Returns the first candidate that every run has, otherwise the first that any run has. Empty if
/// no run has a candidate.
std::string ranking_score(const std::vector<Compared>& runs, const std::string& by) {
  std::string partial;
  for (const Compared& one : runs) {
    for (const std::string& score : ranking_scores(one.config, by)) {
      const auto has = [&](const Compared& run) { return run.last(score).has_value(); };
      if (std::ranges::all_of(runs, has)) return score;
      if (partial.empty() && std::ranges::any_of(runs, has)) partial = score;
    }
  }
  return partial;
}

/// Sorts the runs by a score, the best first. Runs without the score are last.
void rank(std::vector<Compared>& runs, const std::string& score) {
  const bool less = tasks::lower_is_better(metric_of(score));
  std::ranges::stable_sort(runs, {}, [&](const Compared& run) {
    const auto value = run.last(score);
    return std::pair(!value, less ? value.value_or(0) : -value.value_or(0));
  });
}

/// The names of the values in the runs' evaluations: first the score that ranks the runs, then the
/// loss, then all other scores.
Texts figures_of(const std::vector<Compared>& runs, const std::string& score) {
  Texts figures;
  if (!score.empty()) figures.push_back(score);
  figures.emplace_back("loss");
  for (const Compared& run : runs) {
    for (const Json& line : run.metrics) {
      for (const auto& [key, value] : line.members()) {
        const bool scored = key.find('/') != std::string::npos && value.is_number();
        if (scored && std::ranges::count(figures, key) == 0) figures.push_back(key);
      }
    }
  }
  return figures;
}

/// Links to the runs' reports, relative to the folder of `file`. Runs without a report are omitted.
std::string links_of(const std::vector<Compared>& runs, const std::filesystem::path& file) {
  const auto here = std::filesystem::absolute(file).lexically_normal().parent_path();
  std::string links;
  for (const Compared& run : runs) {
    const auto report = std::filesystem::absolute(run.path).lexically_normal() / "report.html";
    if (!std::filesystem::exists(report)) continue;
    links += (links.empty() ? "" : ", ") +
             html::link(run.name, report.lexically_relative(here).string());
  }
  return links.empty() ? html::paragraph("None yet.") : "<p>" + links + "</p>\n";
}

std::string page_of(const std::vector<Compared>& runs, const Texts& figures,
                    const std::string& settings_table, const std::filesystem::path& file) {
  html::Page page("runs compared", text(runs.size(), " runs"));
  page.add("What differs", settings_table);
  page.add("Their reports", links_of(runs, file));
  for (const std::string& figure : figures) {
    html::LineChart chart{.x_label = "step", .y_label = figure, .series = {}};
    chart.log_y = figure == "loss";
    for (const Compared& run : runs) {
      html::Series series = curve(run.name, run.metrics, figure);
      series.marks = figure != "loss";
      if (series.points.size() > 1) chart.series.push_back(std::move(series));
    }
    if (!chart.series.empty()) page.add(figure, html::figure(line_chart(chart), figure));
  }
  return page.render();
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() < 2) wrong_usage("expected two runs or more");
  std::vector<Compared> runs;
  for (const std::string& path : arguments.plain()) {
    const RunFolder folder(path);
    runs.push_back({path, {}, folder.config(), folder.metrics()});
  }
  const std::string by = ranking_from(arguments), score = ranking_score(runs, by);
  LONGHAND_CHECK(by.empty() || !score.empty(), "--by: none of these runs has the score ",
                 quote(by));
  if (!by.empty()) rank(runs, score);
  name(runs);
  std::vector<Report::Column> columns{{"what", ""}};
  for (const Compared& run : runs) columns.push_back({run.path, run.name, "%.4f"});
  Report report(columns);
  std::vector<Texts> body;
  for (const std::string& key : differing(runs)) {
    Json row{{"what", key}};
    Texts cells{html::escape(key)};
    for (const Compared& run : runs) {
      row[run.path] = run.setting(key);
      cells.push_back(html::escape(run.setting(key)));
    }
    report.add(std::move(row));
    body.push_back(std::move(cells));
  }
  const Texts figures = figures_of(runs, score);
  for (const std::string& figure : figures) {
    Json row{{"what", figure}};
    Texts cells{html::escape(figure)};
    for (const Compared& run : runs) {
      const auto value = run.last(figure);
      row[run.path] = value ? Json(*value) : Json();
      cells.push_back(value ? html::number(*value) : "-");
    }
    report.add(std::move(row));
    body.push_back(std::move(cells));
  }
  report.set("score", score.empty() ? Json() : Json(score));
  report.print(std::cout, arguments.json());
  if (!arguments.given("figure")) return;
  Texts header{""};
  for (const Compared& run : runs) header.push_back(html::escape(run.name));
  write_atomically(arguments.word("figure"),
                   page_of(runs, figures, html::table(header, body), arguments.word("figure")));
}

const Register command{
    {.name = "compare",
     .summary = "shows the settings and scores of several runs side by side",
     .usage = {"RUN RUN... [--by SCORE] [--figure FILE]"},
     .options = {ranking_option("no ranking"),
                 {"figure", "FILE", "also write an HTML page with the curves of the runs"},
                 json_option()},
     .examples = {"compare runs/flip-flop-1 runs/flip-flop-2 --figure compare.html",
                  "compare runs/flip-flop-1 runs/flip-flop-2 --by 4x"},
     .notes = "The table shows the settings in which the runs differ, and the loss and scores\n"
              "of the last evaluation. With --by, the runs are sorted and the best run is\n"
              "first. Otherwise the runs keep the order of the command line.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::compare_command
