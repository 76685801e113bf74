#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config.h"
#include "core/data_file.h"

namespace longhand::app {

/// A file on whose contents a run's samples depend, such as a text or a tokenizer.
struct RunData {
  std::string name;  // name within the task: "text", "validation" or "tokenizer.json"
  std::filesystem::path path;
  FileSum sum;

  /// Size and checksum as text: "1234 bytes with checksum 1a2b3c4d".
  std::string content() const;
};

/// The data files of the run's task with their checksums, in a fixed order.
std::vector<RunData> data_of(const Config& config);

/// The file in a run's folder that lists the name, path, size and CRC-32C of each data file.
inline const std::string data_file = "data.json";
std::string data_json(const std::vector<RunData>& data);

/// The name and content() of each file that a run's data.json lists. Throws an Error if data.json
/// is damaged.
std::vector<std::pair<std::string, std::string>> recorded_data(const std::filesystem::path& run);

/// Throws an Error if `data` are not the files with which the run started. The Error names the
/// first file that differs. A run of an older version has no data.json and is accepted.
void require_same_data(const std::filesystem::path& run, const std::vector<RunData>& data);

}  // namespace longhand::app
