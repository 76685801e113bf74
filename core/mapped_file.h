#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace longhand {

/// A file seen as read-only memory; its pages are read when first touched. The bytes stay where
/// they are when the object is moved. If another program cuts the file short while it is mapped, a
/// read of it is a SIGBUS (core/bus_errors.h). Data of a training are not mapped
/// (core/data_file.h).
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
