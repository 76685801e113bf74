#include "core/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/error.h"

namespace longhand {
namespace {

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a link";
    default:
      return "a device";
  }
}

}  // namespace

FileDescriptor open_regular_file(int folder, const std::filesystem::path& folder_path,
                                 const std::string& name, int flags, unsigned mode, Links links) {
  // With O_NONBLOCK, opening a pipe does not wait for the pipe's other end. The flag has no effect
  // on regular files.
  const bool follow = links == Links::follow;
  FileDescriptor file(
      ::openat(folder, name.c_str(),
               flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW), mode));
  const int reason = errno;
  struct stat status {};
  const bool known = file.valid() ? ::fstat(file.get(), &status) == 0
                                  : ::fstatat(folder, name.c_str(), &status,
                                              follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
  if (known && !S_ISREG(status.st_mode)) {
    fail((folder_path / name).native(), ": expected a file, got ", kind_of(status.st_mode));
  }
  if (!file.valid() && (reason != ENOENT || (flags & O_CREAT) != 0)) {
    fail((folder_path / name).native(),
         (flags & O_ACCMODE) == O_RDONLY ? ": cannot be read: " : ": cannot be written: ",
         std::strerror(reason));
  }
  return file;
}

FileDescriptor open_regular_file(const std::filesystem::path& path) {
  FileDescriptor file = open_regular_file(AT_FDCWD, {}, path.native(), O_RDONLY, 0, Links::follow);
  LONGHAND_CHECK(file.valid(), path.native(), ": cannot be read: ", std::strerror(ENOENT));
  return file;
}

}  // namespace longhand
