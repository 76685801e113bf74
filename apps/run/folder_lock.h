#pragma once

#include <optional>
#include <string>

#include "core/folder.h"

namespace longhand::app {

/// Who writes to a folder at this moment; nothing where nobody does.
std::optional<std::string> writer_of(const Folder& folder);

/// Holds the file `lock` of a folder, so that one process at a time writes there. It contains the
/// process's number and its machine's name; the system lets go of it when the process ends, however
/// it ends.
class FolderLock {
 public:
  /// Refused in one line, naming the other process, where that has it.
  explicit FolderLock(Folder folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  Folder folder_;
  FileDescriptor file_;
};

}  // namespace longhand::app
