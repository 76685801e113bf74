#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace longhand {

/// A file that is mapped as read-only memory. Its pages are read when they are first accessed. The
/// bytes keep their address when the object is moved. If another program truncates the file while
/// it is mapped, reading it raises SIGBUS (core/bus_errors.h). Training data is therefore read
/// without mapping (core/data_file.h).
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Removes the pages of this part of the file from the process's memory. They are read again at
  /// the next access.
  void forget(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace longhand
