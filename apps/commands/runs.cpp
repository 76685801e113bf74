#include <algorithm>
#include <iostream>
#include <tuple>

#include "apps/run/ranking.h"
#include "apps/run/run_summary.h"
#include "core/error.h"
#include "core/exception_message.h"
#include "core/quote.h"

namespace longhand::app::runs_command {
namespace {

namespace fs = std::filesystem;

/// A row of the table for a run. If the run cannot be read, the row contains the error message.
Json row_of(const fs::path& path, const std::string& by) {
  Json row{{"run", path.string()}, {"task", {}},  {"heads", {}},   {"layers", {}},
           {"width", {}},          {"step", {}},  {"steps", {}},   {"state", {}},
           {"metric", {}},         {"value", {}}, {"minutes", {}}, {"error", {}}};
  try {
    const RunSummary run = summarize(path, by);
    row["task"] = run.config.task_title();
    const ModelSettings model = run.config.model_settings();
    row["heads"] = model.heads;
    row["layers"] = model.decoder.layers;
    row["width"] = model.decoder.width;
    row["step"] = run.step;
    row["steps"] = run.steps;
    row["state"] = run.state;
    row["metric"] = run.score;
    if (run.value) row["value"] = *run.value;
    row["minutes"] = run.seconds / 60;
  } catch (const std::exception& error) {
    row["state"] = "unreadable";
    row["error"] = message_of(error);
  }
  return row;
}

/// Layers, width and heads of a run's model: "6x64 softmax:4".
std::string model_of(const Json& row) {
  if (row["heads"].is_null()) return "-";
  return text(row["layers"].dump(), 'x', row["width"].dump(), ' ', row["heads"].string());
}

/// The number of finished steps of a run. If the run is unfinished, the total number of steps is
/// appended, as in "40/1000".
std::string steps_of(const Json& row) {
  if (row["step"].is_null()) return "-";
  const std::string done = row["step"].dump(), all = row["steps"].dump();
  return done == all ? done : done + "/" + all;
}

/// Sorts the rows by their scores, the best first. Rows without a score are last.
void rank(std::vector<Json>& rows) {
  const auto key = [](const Json& row) {
    const bool scored = row["value"].is_number();
    const double value = scored ? row["value"].number() : 0;
    const std::string metric = scored ? row["metric"].string() : std::string();
    return std::tuple(!scored, metric, tasks::lower_is_better(metric_of(metric)) ? value : -value);
  };
  std::ranges::stable_sort(rows, {}, key);
}

void run(const Arguments& arguments) {
  const std::string by = ranking_from(arguments);
  std::vector<std::string> folders = arguments.plain();
  if (folders.empty()) folders.push_back("runs");
  Report report({{"run", "run"},
                 {"task", "task"},
                 {"heads", "model", {}, model_of},
                 {"step", "steps", {}, steps_of},
                 {"state", "state"},
                 {"value", "score", "%.4f"},
                 {"metric", "which is"},
                 {"minutes", "min", "%.1f"}});
  std::vector<std::string> skipped;
  std::vector<Json> rows;
  for (const std::string& folder : folders) {
    const FoundRuns found = runs_below(folder);
    for (const fs::path& path : found.runs) rows.push_back(row_of(path, by));
    skipped.insert(skipped.end(), found.skipped.begin(), found.skipped.end());
  }
  if (!by.empty()) {
    const auto scored = [](const Json& row) { return row["value"].is_number(); };
    LONGHAND_CHECK(std::ranges::any_of(rows, scored), "--by: no run has the score ", quote(by));
    rank(rows);
  }
  for (Json& row : rows) report.add(std::move(row));
  report.print(std::cout, arguments.json());
  std::cout.flush();
  for (const Json& row : report.rows()) {
    if (!row["error"].is_null()) std::cerr << printable(row["error"].string()) << '\n';
  }
  for (const std::string& message : skipped) std::cerr << printable(message) << '\n';
}

const Register command{
    {.name = "runs",
     .summary = "lists the runs in a folder and its subfolders, with their scores",
     .usage = {"[FOLDER]... [--by SCORE]"},
     .options = {ranking_option("no ranking"), json_option()},
     .examples = {"runs", "runs runs/reversal-heads --by ood"},
     .notes =
         "FOLDER defaults to runs/. The score is from the last evaluation. With --by, the best\n"
         "run is first. Without --by, the runs are sorted by path, and the score is the main\n"
         "metric of the task. The column min is the time of the training steps in minutes.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::runs_command
