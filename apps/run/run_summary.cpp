#include "apps/run/run_summary.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::app {

namespace fs = std::filesystem;

RunSummary summarize(const fs::path& path) {
  const RunFolder run(path);
  RunSummary summary{.config = run.config()};
  summary.steps = summary.config.integer("training.steps", 0, std::int64_t{1} << 40);
  const std::string& distribution = summary.config.kind().distributions.front().name;
  summary.metric = text(distribution, "/", summary.config.task()->main_metric());
  for (const Json& line : run.metrics()) {
    summary.step = std::max(summary.step, line["step"].integer());
    if (const Json* const seconds = line.find("seconds")) summary.seconds += seconds->number();
    if (const Json* const value = line.find(summary.metric)) summary.value = value->number();
  }
  if (writer_of(Folder(path))) {
    summary.state = "training";
  } else {
    summary.state = summary.step >= summary.steps ? "finished" : "stopped";
  }
  return summary;
}

std::vector<fs::path> runs_below(const fs::path& folder) {
  LONGHAND_CHECK(fs::is_directory(folder), folder.string(), ": expected a folder");
  std::vector<fs::path> runs;
  const auto options = fs::directory_options::skip_permission_denied;
  const auto holds_a_run = [](const fs::path& path) { return fs::exists(path / "config.ini"); };
  if (holds_a_run(folder)) return {folder};
  for (fs::recursive_directory_iterator it(folder, options), end; it != end; ++it) {
    if (!it->is_directory() || !holds_a_run(it->path())) continue;
    runs.push_back(it->path());
    it.disable_recursion_pending();
  }
  std::ranges::sort(runs);
  return runs;
}

}  // namespace longhand::app
