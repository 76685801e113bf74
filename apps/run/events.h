#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/folder.h"

namespace longhand::app {

/// A file for TensorBoard, with one record of named numbers per step. A record is
///   length (u64), masked CRC-32C of the length, an Event message, masked CRC-32C of it
/// Readers ignore an incomplete record at the end.
class EventsFile {
 public:
  /// Creates events.out.tfevents.SECONDS.longhand in the folder.
  explicit EventsFile(const Folder& folder);

  void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void write(const std::string& message);

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace longhand::app
