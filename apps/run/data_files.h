#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config.h"
#include "core/data_file.h"

namespace longhand::app {

/// A file on whose bytes a run's samples depend: a text, a tokenizer.
struct RunData {
  std::string name;  // the task's: "text", "validation", "tokenizer.json"
  std::filesystem::path path;
  FileSum sum;

  std::string content() const;  // "1234 bytes with checksum 1a2b3c4d"
};

/// The files of the run's task, read for their sums, in a fixed order.
std::vector<RunData> data_of(const Config& config);

/// The file of a run folder that lists each data file's name, path, bytes and CRC-32C.
inline const std::string data_file = "data.json";
std::string data_json(const std::vector<RunData>& data);

/// The name and content of each file in a run's data.json; refused where that is damaged.
std::vector<std::pair<std::string, std::string>> recorded_data(const std::filesystem::path& run);

/// Refused, naming the first file that differs, if these are not the files with which the run
/// began. A run of a version that wrote no data.json is accepted.
void require_same_data(const std::filesystem::path& run, const std::vector<RunData>& data);

}  // namespace longhand::app
