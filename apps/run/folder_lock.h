#pragma once

#include <optional>
#include <string>

#include "core/folder.h"

namespace longhand::app {

/// The process that currently writes to a folder, as text; empty if there is none.
std::optional<std::string> writer_of(const Folder& folder);

/// Locks the file `lock` of a folder, so that only one process at a time writes to the folder. The
/// file contains the process id and the host's name. The system releases the lock however the
/// process ends.
class FolderLock {
 public:
  /// Throws a one-line Error that names the holder if another process holds the lock.
  explicit FolderLock(Folder folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  Folder folder_;
  FileDescriptor file_;
};

}  // namespace longhand::app
