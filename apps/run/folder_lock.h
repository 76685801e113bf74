#pragma once

#include <optional>
#include <string>

#include "core/folder.h"

namespace longhand::app {

/// The process that is writing to a folder, such as "process 123 on HOST". No value if there is
/// none.
std::optional<std::string> writer_of(const Folder& folder);

/// Locks the file `lock` of a folder, so that only one process at a time writes to the folder. The
/// file contains the process id and the name of the host. The system releases the lock when the
/// process ends, for whatever reason.
class FolderLock {
 public:
  /// Throws a one-line Error if another process holds the lock. The Error names that process.
  explicit FolderLock(Folder folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  Folder folder_;
  FileDescriptor file_;
};

}  // namespace longhand::app
