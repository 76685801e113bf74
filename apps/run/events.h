#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/folder.h"

namespace longhand::app {

/// A file for TensorBoard. It contains one record of named numbers per step:
///   length (u64), masked CRC-32C of the length, an Event message, masked CRC-32C of the message.
/// TensorBoard ignores an incomplete record at the end of the file.
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
