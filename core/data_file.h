#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>

#include "core/file_descriptor.h"

namespace longhand {

/// The size of a file and the CRC-32C of its bytes.
struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;

  bool operator==(const FileSum&) const = default;
};

/// A file that is read by position while its bytes must stay the same. Nothing is mapped: if
/// another program cuts the file short, the next read is an Error, not a SIGBUS. A file that
/// replaces it under the same name changes nothing here.
class DataFile {
 public:
  /// Reads all of the file once for its checksum.
  explicit DataFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return sum_.bytes; }
  const FileSum& sum() const { return sum_; }

  /// Bytes from `begin` on. An Error if the file has changed since it was opened: its size and
  /// times are compared after every read, and all of its bytes if these differ. Threads may share
  /// it.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

 private:
  void require_unchanged() const;

  std::filesystem::path path_;
  FileDescriptor file_;
  FileSum sum_;
  mutable std::atomic<std::uint64_t> times_;  // of size and times, as last compared
  mutable std::mutex comparing_;
};

}  // namespace longhand
