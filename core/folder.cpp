#include "core/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/text_file.h"

namespace longhand {
namespace fs = std::filesystem;

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::vector<std::string> names_in(int descriptor, const fs::path& path) {
  // The folder is opened again, because a descriptor duplicated with dup() would share its read
  // position with `descriptor`.
  const int own = ::openat(descriptor, ".", folder_flags);
  DIR* const folder = own < 0 ? nullptr : ::fdopendir(own);
  if (!folder && own >= 0) ::close(own);
  LONGHAND_CHECK(folder, path.native(), ": cannot be listed: ", std::strerror(errno));
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

/// Removes a file, or a folder with all of its contents. Returns false and sets errno if an entry
/// could not be removed.
bool remove_all(int parent, const std::string& name, const fs::path& path) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  const FileDescriptor folder(::openat(parent, name.c_str(), folder_flags | O_NOFOLLOW));
  if (!folder.valid()) return false;
  for (const std::string& inner : names_in(folder.get(), path)) {
    if (!remove_all(folder.get(), inner, path)) return false;
  }
  return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace

Folder::Folder(fs::path path, FileDescriptor descriptor)
    : path_(std::move(path)),
      descriptor_(std::make_shared<const FileDescriptor>(std::move(descriptor))) {
  LONGHAND_CHECK(descriptor_->valid(), path_.native(),
                 ": cannot open the folder: ", std::strerror(errno));
}

Folder::Folder(fs::path path)
    : Folder(path, FileDescriptor(::open(path.empty() ? "." : path.c_str(), folder_flags))) {}

Folder Folder::make(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  LONGHAND_CHECK(!error, path.native(), ": cannot be created: ", error.message());
  return Folder(path);
}

Folder Folder::make_folder(const std::string& name) const {
  const bool made = ::mkdirat(descriptor(), name.c_str(), 0777) == 0;
  LONGHAND_CHECK(made || errno == EEXIST, (path_ / name).native(),
                 ": cannot be created: ", std::strerror(errno));
  return {path_ / name, FileDescriptor(::openat(descriptor(), name.c_str(), folder_flags))};
}

Folder Folder::below(const fs::path& relative) const {
  Folder folder = *this;
  for (const fs::path& name : relative) {
    LONGHAND_CHECK(relative.is_relative() && name != "..", relative.native(),
                   ": expected a relative path without \"..\" to a folder inside ", path_.native());
    if (name.empty() || name == ".") continue;
    FileDescriptor inner = folder.open(name.native(), folder_flags | O_NOFOLLOW);
    const int reason = errno;
    struct stat status {};
    LONGHAND_CHECK(
        inner.valid() ||
            ::fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISLNK(status.st_mode),
        (folder.path_ / name).native(), ": expected a folder, got a link");
    errno = reason;
    folder = Folder(folder.path_ / name, std::move(inner));
  }
  return folder;
}

FileDescriptor Folder::open(const std::string& name, int flags, unsigned mode) const {
  return FileDescriptor(::openat(descriptor(), name.c_str(), flags | O_CLOEXEC, mode));
}

FileDescriptor Folder::create_file(const std::string& name) const {
  ::unlinkat(descriptor(), name.c_str(), 0);  // if this fails, open_file() throws
  return open_file(name, O_WRONLY | O_CREAT | O_EXCL, Links::refuse);
}

std::optional<std::string> Folder::read(const std::string& name, std::size_t most,
                                        Links links) const {
  const FileDescriptor file = open_file(name, O_RDONLY, links);
  if (!file.valid()) return std::nullopt;
  return read_text(file, (path_ / name).native(), most);
}

bool Folder::contains(const std::string& name) const {
  struct stat status {};
  return ::fstatat(descriptor(), name.c_str(), &status, 0) == 0;
}

std::vector<std::string> Folder::names() const { return names_in(descriptor(), path_); }

void Folder::rename(const std::string& from, const std::string& to) const {
  LONGHAND_CHECK(::renameat(descriptor(), from.c_str(), descriptor(), to.c_str()) == 0,
                 (path_ / from).native(), ": cannot be renamed to ", to, ": ",
                 std::strerror(errno));
}

bool Folder::exchange(const std::string& one, const std::string& other) const {
  return ::renameat2(descriptor(), one.c_str(), descriptor(), other.c_str(), RENAME_EXCHANGE) == 0;
}

void Folder::remove(const std::string& name) const {
  LONGHAND_CHECK(remove_all(descriptor(), name, path_ / name), (path_ / name).native(),
                 ": cannot be removed: ", std::strerror(errno));
}

void Folder::sync() const {
  // Some file systems cannot sync a folder and return EINVAL. This failure is ignored.
  LONGHAND_CHECK(::fsync(descriptor()) == 0 || errno == EINVAL, path_.native(),
                 ": cannot sync the folder: ", std::strerror(errno));
}

bool Folder::in_place() const {
  struct stat held {
  }, there{};
  return ::fstat(descriptor(), &held) == 0 &&
         ::stat(path_.empty() ? "." : path_.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

void Folder::require_in_place() const {
  if (in_place()) return;
  struct stat held {};
  const bool removed = ::fstat(descriptor(), &held) != 0 || held.st_nlink == 0;
  fail(path_.native(), removed ? ": the folder was removed while it was in use"
                               : ": the folder was moved or replaced while it was in use");
}

}  // namespace longhand
