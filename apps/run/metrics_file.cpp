#include "apps/run/metrics_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"

namespace longhand::app {
namespace {

const std::string metrics_file = "metrics.jsonl";

std::optional<Json> parsed(std::string_view text) {
  std::optional<Json> json = Json::parse(text);
  const Json* const step = json && json->is_object() ? json->find("step") : nullptr;
  if (!step || !step->is_integer() || std::abs(step->number()) > 0x1p62) return std::nullopt;
  return json;
}

}  // namespace

std::vector<Json> Metrics::sound() const {
  std::vector<Json> all;
  for (const Line& line : lines) {
    if (line.json) all.push_back(*line.json);
  }
  return all;
}

std::vector<std::string> Metrics::damage() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].json) continue;
    all.push_back(text(file, ':', i + 1, ": damaged: expected an object with a step"));
  }
  return all;
}

Metrics read_metrics(const Folder& folder) {
  Metrics metrics;
  metrics.file = (folder.path() / metrics_file).string();
  const std::string all = folder.read(metrics_file).value_or("");
  for (std::string_view rest = all; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      metrics.cut = true;
      break;
    }
    const std::string_view line = rest.substr(0, end);
    metrics.lines.push_back({std::string(line), parsed(line)});
    rest.remove_prefix(end + 1);
  }
  return metrics;
}

FileDescriptor open_metrics(const Folder& folder, std::int64_t step, bool evaluated) {
  const Metrics metrics = read_metrics(folder);
  std::string kept;
  bool dropped = metrics.cut;
  for (const Metrics::Line& line : metrics.lines) {
    const std::int64_t of = line.json ? (*line.json)["step"].integer() : 0;
    const bool again =
        of > step || (of == step && line.json && line.json->contains("intervals") && !evaluated);
    if (!again) kept += line.text + "\n";
    dropped = dropped || again;
  }
  if (dropped) write_atomically(folder, metrics_file, kept);
  FileDescriptor file = folder.open(metrics_file, O_WRONLY | O_APPEND | O_CREAT);
  LONGHAND_CHECK(file.valid(), metrics.file, ": cannot be written: ", std::strerror(errno));
  return file;
}

}  // namespace longhand::app
