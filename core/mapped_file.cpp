#include "core/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/regular_file.h"

namespace longhand {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  struct stat status {};
  LONGHAND_CHECK(::fstat(file.get(), &status) == 0, path.native(),
                 ": cannot be read: ", std::strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // an empty mapping is an error to the kernel, not to us
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  LONGHAND_CHECK(start != MAP_FAILED, path.native(), ": cannot map: ", std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace longhand
