#include "apps/run/run_summary.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "apps/run/ranking.h"
#include "core/error.h"

namespace longhand::app {

namespace fs = std::filesystem;

namespace {

class RunFinder {
 public:
  explicit RunFinder(Links links) : links_(links) {}

  void look_at_top(const Folder& folder) {
    if (holds_a_run(folder)) {
      found.runs.push_back(folder.path());
    } else {
      look_into(folder, 0);
    }
  }

  FoundRuns found;

 private:
  static constexpr int deepest = 64;
  static constexpr std::int64_t most_folders = 100'000;
  static constexpr std::size_t most_skipped = 100;

  void look_into(const Folder& folder, int depth) {
    for (const std::string& name : folder.names()) {
      try {
        look_at(folder, name, depth);
      } catch (const Error& error) {
        skip(error.what());
      }
    }
  }

  void look_at(const Folder& parent, const std::string& name, int depth) {
    const fs::path path = parent.path() / name;
    struct stat status {};
    if (::fstatat(parent.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool link = S_ISLNK(status.st_mode);
    if (link && ::fstatat(parent.descriptor(), name.c_str(), &status, 0) != 0) {
      if (errno != ENOENT) skip(text(path.native(), ": cannot be read: ", std::strerror(errno)));
      return;
    }
    if (!S_ISDIR(status.st_mode)) return;
    if (link && links_ == Links::refuse) {
      return skip(text(path.native(), ": is a link, which is not followed"));
    }
    if (++folders_ > most_folders) {
      if (folders_ == most_folders + 1) {
        skip(
            text(path.native(), ": not looked at: there are more than ", most_folders, " folders"));
      }
      return;
    }
    const Folder folder = link ? Folder(path) : parent.below(name);
    if (holds_a_run(folder)) {
      found.runs.push_back(path);
    } else if (!link) {
      LONGHAND_CHECK(depth < deepest, path.native(), ": skipped: expected folders nested at most ",
                     deepest, " deep");
      look_into(folder, depth + 1);
    }
  }

  static bool holds_a_run(const Folder& folder) {
    struct stat status {};
    if (::fstatat(folder.descriptor(), "config.ini", &status, AT_SYMLINK_NOFOLLOW) == 0)
      return true;
    LONGHAND_CHECK(errno == ENOENT, folder.path().native(),
                   ": cannot be searched: ", std::strerror(errno));
    return false;
  }

  void skip(std::string message) {
    if (found.skipped.size() < most_skipped) found.skipped.push_back(std::move(message));
  }

  Links links_;
  std::int64_t folders_ = 0;
};

}  // namespace

RunSummary summarize(const fs::path& path, std::string_view by) {
  const RunFolder run(path);
  RunSummary summary{.config = run.config()};
  summary.steps = summary.config.training().schedule.steps;
  const std::vector<std::string> scores = ranking_scores(summary.config, by);
  std::vector<std::optional<double>> values(scores.size());
  std::int64_t timed = 0;
  run.read_metrics([&](const Json& line) {
    summary.step = std::max(summary.step, line["step"].integer());
    if (const Json* const seconds = line.find("seconds")) {
      summary.seconds += seconds->number();
      ++timed;
    }
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (const Json* const value = line.find(scores[i])) values[i] = value->number();
    }
  });
  if (timed > 0) {
    const double missing = static_cast<double>(std::max<std::int64_t>(0, summary.step - timed));
    summary.seconds += missing * summary.seconds / static_cast<double>(timed);
  }
  const auto first =
      std::ranges::find_if(values, [](const auto& value) { return value.has_value(); });
  const auto found = first == values.end() ? 0 : first - values.begin();
  summary.score = scores[static_cast<std::size_t>(found)];
  summary.value = values[static_cast<std::size_t>(found)];
  const Folder folder(path);
  summary.state = writer_of(folder)
                      ? "training"
                      : idle_state(folder, is_finished(path, summary.config), summary.step);
  return summary;
}

std::string idle_state(const Folder& run, bool finished, std::int64_t step, Links links) {
  if (finished) return "finished";
  const std::optional<std::string> origin =
      step == 0 ? run.read("origin", 64, links) : std::nullopt;
  for (const char* known : {"imported", "repaired", "quantized"}) {
    if (origin == text(known, '\n')) return known;
  }
  return "stopped";
}

bool is_finished(const fs::path& run, std::int64_t steps, std::int64_t evaluate_samples) {
  const nn::CheckpointStore store(run / "checkpoints", 1);
  if (store.latest() != steps) return false;
  if (evaluate_samples == 0) return true;
  try {
    return nn::read_checkpoint_info(store.path(steps)).score.has_value();
  } catch (const Error&) {  // the checkpoint is damaged; `train --resume` reports details
    return false;
  }
}

bool is_finished(const fs::path& run, const Config& config) {
  return is_finished(run, config.training().schedule.steps, config.training().evaluate_samples);
}

std::optional<double> score_after(const fs::path& path, std::int64_t step,
                                  const std::string& score) {
  std::optional<double> found;
  RunFolder(path).read_metrics([&](const Json& line) {
    const Json* const value = line.find(score);
    if (value && line["step"].integer() == step) found = value->number();
  });
  return found;
}

double loss_before(const fs::path& path, std::int64_t step) {
  double sum = 0, count = 0;
  RunFolder(path).read_metrics([&](const Json& line) {
    const Json* const loss = line.find("loss");
    const std::int64_t at = line["step"].integer();
    if (!loss || at > step || 10 * at <= 9 * step) return;
    sum += loss->number();
    ++count;
  });
  return count > 0 ? sum / count : std::numeric_limits<double>::infinity();
}

FoundRuns runs_below(const fs::path& folder, Links links) {
  RunFinder finder(links);
  finder.look_at_top(Folder(folder));
  std::ranges::sort(finder.found.runs);
  return std::move(finder.found);
}

}  // namespace longhand::app
