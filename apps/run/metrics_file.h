#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/folder.h"
#include "core/json.h"

namespace longhand::app {

/// The state of metrics.jsonl, which holds an object with a number `step` on each line.
struct Metrics {
  std::int64_t lines = 0;  // sound or damaged
  bool cut = false;        // the last line has no end, as a kill leaves it; it is not counted
  std::vector<std::string> damage;  // a message for each damaged line, beginning with file and line
};

/// Reads metrics.jsonl line by line and calls `take` for each sound one, so that memory does not
/// grow with the file. No lines if the folder has no such file. A file with more than 1,000 damaged
/// lines is refused, so that rubbish costs neither time nor memory.
Metrics read_metrics(const Folder& folder, const std::function<void(const Json&)>& take = {});

/// Opens metrics.jsonl for appending. Lines after `step` are dropped, and so is the evaluation at
/// `step` unless `evaluated`, because they will be written again. Damaged lines are kept.
FileDescriptor open_metrics(const Folder& folder, std::int64_t step, bool evaluated);

}  // namespace longhand::app
