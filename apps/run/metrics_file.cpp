#include "apps/run/metrics_file.h"

#include <fcntl.h>

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/text_file.h"

namespace longhand::app {
namespace {

const std::string metrics_file = "metrics.jsonl";
constexpr std::size_t longest_line = 16u << 20;  // maximum bytes of a line
constexpr std::size_t most_damaged = 1000;       // maximum number of damaged lines

std::optional<Json> parsed(std::string_view text) {
  std::optional<Json> json = Json::parse(text);
  const Json* const step = json && json->is_object() ? json->find("step") : nullptr;
  if (!step || !step->is_integer() || std::abs(step->number()) > 0x1p62) return std::nullopt;
  return json;
}

/// Calls `take` with the text of each line of metrics.jsonl, and with its JSON object. For a
/// damaged line, `take` receives no object.
Metrics each_line(const Folder& folder,
                  const std::function<void(std::string_view, const std::optional<Json>&)>& take) {
  Metrics metrics;
  FileDescriptor file = folder.open_file(metrics_file, O_RDONLY, Links::follow);
  if (!file.valid()) return metrics;
  const std::string path = (folder.path() / metrics_file).string();
  LineReader lines(std::move(file), path, longest_line);
  while (const auto line = lines.next()) {
    metrics.cut = lines.cut();
    if (metrics.cut) break;
    ++metrics.lines;
    const std::optional<Json> json = parsed(*line);
    if (!json) {
      LONGHAND_CHECK(metrics.damage.size() < most_damaged, path, ": more than ", most_damaged,
                     " lines are damaged: expected a JSON object with a step on each line");
      metrics.damage.push_back(
          text(path, ':', lines.number(), ": damaged: expected an object with a step"));
    }
    take(*line, json);
  }
  return metrics;
}

}  // namespace

Metrics read_metrics(const Folder& folder, const std::function<void(const Json&)>& take) {
  return each_line(folder, [&](std::string_view, const std::optional<Json>& json) {
    if (json && take) take(*json);
  });
}

FileDescriptor open_metrics(const Folder& folder, std::int64_t step, bool evaluated) {
  // The new contents of metrics.jsonl. They replace the file only if a line is dropped.
  AtomicFile kept(folder, metrics_file);
  bool dropped = false;
  const auto keep = [&](std::string_view line, const std::optional<Json>& json) {
    const std::int64_t of = json ? (*json)["step"].integer() : 0;
    const bool again =
        of > step || (of == step && json && json->contains("intervals") && !evaluated);
    dropped = dropped || again;
    if (again) return;
    kept.write(line);
    kept.write("\n");
  };
  dropped = each_line(folder, keep).cut || dropped;
  if (dropped) kept.commit();
  return folder.open_file(metrics_file, O_WRONLY | O_APPEND | O_CREAT, Links::refuse);
}

}  // namespace longhand::app
