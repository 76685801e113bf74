#pragma once

#include <optional>
#include <string>

#include "core/folder.h"

namespace longhand::app {

/// The process that currently writes to a folder; empty if there is none.
std::optional<std::string> writer_of(const Folder& folder);

/// Holds the file `lock` of a folder, so that one process at a time writes there. The file contains
/// the process id and the machine's name. The system releases the lock when the process ends in any
/// way.
class FolderLock {
 public:
  /// Throws a one-line Error that names the other process if it holds the lock.
  explicit FolderLock(Folder folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  Folder folder_;
  FileDescriptor file_;
};

}  // namespace longhand::app
