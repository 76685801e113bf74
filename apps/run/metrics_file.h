#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/folder.h"
#include "core/json.h"

namespace longhand::app {

/// What is in metrics.jsonl: an object with a number `step` a line.
struct Metrics {
  struct Line {
    std::string text;
    std::optional<Json> json;  // none: the line is damaged
  };
  std::string file;  // its path
  std::vector<Line> lines;
  bool cut = false;  // the last line has no end, as a kill leaves it; it is not among the lines

  std::vector<Json> sound() const;
  /// For each damaged line what is wrong, beginning with file and line.
  std::vector<std::string> damage() const;
};

/// Nothing where the folder has no such file; refused where it cannot be read.
Metrics read_metrics(const Folder& folder);

/// Opens metrics.jsonl for adding to. What comes after `step` is dropped, and the evaluation at
/// `step` unless `evaluated`: it will be written again. A damaged line is kept as it is.
FileDescriptor open_metrics(const Folder& folder, std::int64_t step, bool evaluated);

}  // namespace longhand::app
