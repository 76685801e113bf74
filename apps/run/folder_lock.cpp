#include "apps/run/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace longhand::app {
namespace {

const std::string lock_file = "lock";

/// The text "process 123 on HOST", which the lock's holder wrote to the file.
std::string holder(const FileDescriptor& file) {
  std::array<char, 128> written{};
  const ssize_t size = ::pread(file.get(), written.data(), written.size(), 0);
  std::string name(written.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size)));
  name.erase(std::ranges::find_if(name, [](char c) { return c < ' ' || c > '~'; }), name.end());
  return name.empty() ? "another process" : name;
}

std::string own_name() {
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return text("process ", ::getpid(), " on ", host.data());
}

}  // namespace

std::optional<std::string> writer_of(const Folder& folder) {
  const FileDescriptor file = folder.open_file(lock_file, O_RDONLY, Links::refuse);
  if (!file.valid() || ::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  return holder(file);
}

FolderLock::FolderLock(Folder folder) : folder_(std::move(folder)) {
  const std::string path = (folder_.path() / lock_file).string();
  for (;;) {
    file_ = folder_.open_file(lock_file, O_RDWR | O_CREAT, Links::refuse);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      LONGHAND_CHECK(errno == EWOULDBLOCK, path, ": cannot be locked: ", std::strerror(errno));
      fail(folder_.path().string(), ": the folder is in use by ", holder(file_));
    }
    // The previous holder of the lock may have removed the file after this process opened it. The
    // lock is valid only if the folder still contains the file that this process locked.
    struct stat held {
    }, there{};
    if (::fstat(file_.get(), &held) == 0 &&
        ::fstatat(folder_.descriptor(), lock_file.c_str(), &there, 0) == 0 &&
        held.st_dev == there.st_dev && held.st_ino == there.st_ino) {
      break;
    }
  }
  const std::string name = own_name() + "\n";
  const bool written =
      ::ftruncate(file_.get(), 0) == 0 &&
      ::pwrite(file_.get(), name.data(), name.size(), 0) == static_cast<ssize_t>(name.size());
  LONGHAND_CHECK(written, path, ": cannot be written: ", std::strerror(errno));
}

FolderLock::~FolderLock() {
  if (file_.valid()) ::unlinkat(folder_.descriptor(), lock_file.c_str(), 0);
}

}  // namespace longhand::app
