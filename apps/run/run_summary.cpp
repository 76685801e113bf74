#include "apps/run/run_summary.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace longhand::app {

namespace fs = std::filesystem;

namespace {

std::string main_metric_of(const Config& config) {
  const std::string& distribution = config.kind().distributions.front().name;
  return text(distribution, "/", config.task()->main_metric());
}

}  // namespace

RunSummary summarize(const fs::path& path) {
  const RunFolder run(path);
  RunSummary summary{.config = run.config()};
  summary.steps = summary.config.integer("training.steps", 0, std::int64_t{1} << 40);
  summary.metric = main_metric_of(summary.config);
  for (const Json& line : run.metrics()) {
    summary.step = std::max(summary.step, line["step"].integer());
    if (const Json* const seconds = line.find("seconds")) summary.seconds += seconds->number();
    if (const Json* const value = line.find(summary.metric)) summary.value = value->number();
  }
  if (writer_of(Folder(path))) {
    summary.state = "training";
  } else {
    summary.state = is_finished(path, summary.config) ? "finished" : "stopped";
  }
  return summary;
}

bool is_finished(const fs::path& run, std::int64_t steps, std::int64_t evaluate_samples) {
  const nn::CheckpointStore store(run / "checkpoints", 1);
  if (store.latest() != steps) return false;
  if (evaluate_samples == 0) return true;
  try {
    return nn::read_checkpoint_info(store.path(steps)).score.has_value();
  } catch (const Error&) {  // damaged: --resume says how
    return false;
  }
}

bool is_finished(const fs::path& run, const Config& config) {
  return is_finished(run, config.integer("training.steps", 0, longest_training),
                     config.integer("training.evaluate_samples", 0, 1 << 24));
}

std::optional<double> score_after(const fs::path& path, std::int64_t step) {
  const RunFolder run(path);
  const std::string metric = main_metric_of(run.config());
  std::optional<double> found;
  for (const Json& line : run.metrics()) {
    const Json* const value = line.find(metric);
    if (value && line["step"].integer() == step) found = value->number();
  }
  return found;
}

double loss_before(const fs::path& path, std::int64_t step) {
  double sum = 0, count = 0;
  for (const Json& line : RunFolder(path).metrics()) {
    const Json* const loss = line.find("loss");
    const std::int64_t at = line["step"].integer();
    if (!loss || at > step || 10 * at <= 9 * step) continue;
    sum += loss->number();
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::infinity();
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
