#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>

#include "core/file_descriptor.h"

namespace longhand {

/// The size of a file and the CRC-32C of its contents.
struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;

  bool operator==(const FileSum&) const = default;
};

/// A file whose contents must not change while it is in use. The file is not mapped. If another
/// program truncates it, the next read therefore throws an Error and does not raise SIGBUS. If
/// another file replaces it at the same path, this object still reads the old file.
class DataFile {
 public:
  /// Opens the file and reads it once to compute its checksum.
  explicit DataFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return sum_.bytes; }
  const FileSum& sum() const { return sum_; }

  /// Reads out.size() bytes, beginning at offset `begin`. After every read, compares the file's
  /// size and times with those of the last comparison. If they differ, also compares the checksum.
  /// Throws an Error if the contents have changed since the file was opened. Several threads may
  /// use the object at once.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

 private:
  void require_unchanged() const;

  std::filesystem::path path_;
  FileDescriptor file_;
  FileSum sum_;
  // Hash of the file's size, times and other metadata when its checksum was last determined. While
  // the hash is the same, the contents count as unchanged.
  mutable std::atomic<std::uint64_t> times_;
  mutable std::mutex comparing_;
};

}  // namespace longhand
