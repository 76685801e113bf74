#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/file_descriptor.h"

namespace longhand {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe by that name is refused below, not waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  LONGHAND_CHECK(file.valid(), path.native(), ": cannot open: ", std::strerror(errno));
  struct stat status {};
  LONGHAND_CHECK(::fstat(file.get(), &status) == 0, path.native(),
                 ": cannot read: ", std::strerror(errno));
  LONGHAND_CHECK(S_ISREG(status.st_mode), path.native(), ": expected a file, got ",
                 S_ISDIR(status.st_mode) ? "a folder" : "something else");
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
