#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace longhand {

/// A file seen as read-only memory; its pages are read when first touched. The bytes stay where
/// they are when the object is moved. A file that another program cuts short while it is mapped
/// ends this one with SIGBUS: replace files by renaming, as AtomicFile does.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace longhand
