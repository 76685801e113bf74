#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/folder.h"
#include "core/json.h"

namespace longhand::app {

/// The state of metrics.jsonl. Each line of the file is a JSON object with a number `step`.
struct Metrics {
  std::int64_t lines = 0;  // number of lines, including damaged ones
  /// True if the last line is incomplete because the process was killed. This line is not counted.
  bool cut = false;
  /// A message for each damaged line. It begins with the name of the file and the number of the
  /// line.
  std::vector<std::string> damage;
};

/// Reads metrics.jsonl line by line and calls `take` for each undamaged line, so memory does not
/// grow with the file. A folder without the file has no lines. After 1,000 damaged lines, reading
/// stops with an Error. This bounds time and memory for arbitrary files.
Metrics read_metrics(const Folder& folder, const std::function<void(const Json&)>& take = {});

/// Opens metrics.jsonl for appending. Lines after `step` are removed, because they will be written
/// again. Unless `evaluated` is true, the evaluation at `step` is removed too. Damaged lines are
/// kept.
FileDescriptor open_metrics(const Folder& folder, std::int64_t step, bool evaluated);

}  // namespace longhand::app
