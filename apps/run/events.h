#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"

namespace longhand::app {

/// CRC-32C (Castagnoli), as the records of TensorBoard's files want it.
std::uint32_t crc32c(std::string_view bytes);

/// A file that TensorBoard reads: one record for each step, with named numbers. Each record is
///   length (u64), masked CRC of the length, an Event message, masked CRC of the message
/// Whatever a cut write leaves at the end is passed over by its readers.
class EventsFile {
 public:
  /// Makes events.out.tfevents.SECONDS.longhand in the folder.
  explicit EventsFile(const std::filesystem::path& folder);

  void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void write(const std::string& message);

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace longhand::app
