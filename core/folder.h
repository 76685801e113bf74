#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/regular_file.h"

namespace longhand {

/// A folder that is kept open. Names always refer to entries of this folder, even if it was moved
/// or its path leads to another folder. Copies share the descriptor. Names must not contain '/'.
class Folder {
 public:
  /// Opens an existing folder. Throws an Error if it cannot be opened.
  explicit Folder(std::filesystem::path path);
  /// Opens a folder. Creates it and its parents if they are missing.
  static Folder make(const std::filesystem::path& path);
  /// Opens a folder inside this folder. Creates it if it is missing.
  Folder make_folder(const std::string& name) const;
  /// Opens a folder below this folder. The path is opened component by component. A component that
  /// is a link or ".." is refused.
  Folder below(const std::filesystem::path& relative) const;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_->get(); }

  /// Opens a file with flags and mode as in open(2). If this fails, the result is invalid and errno
  /// is set.
  FileDescriptor open(const std::string& name, int flags, unsigned mode = 0666) const;
  /// Opens a regular file. If the name does not exist, the result is invalid. Throws an Error if
  /// the name is not a regular file, or if it is a link and links are refused.
  FileDescriptor open_file(const std::string& name, int flags, Links links,
                           unsigned mode = 0666) const {
    return open_regular_file(descriptor(), path_, name, flags, mode, links);
  }
  /// Creates an empty file for writing. An existing file, pipe or link with this name is removed
  /// first, so that nothing is written to the target of a link.
  FileDescriptor create_file(const std::string& name) const;
  /// Returns the contents of a regular file, or no value if the file is missing. Throws an Error if
  /// the file has more than `most` bytes.
  std::optional<std::string> read(const std::string& name, std::size_t most,
                                  Links links = Links::follow) const;
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;  // sorted names of all files and folders in this folder

  /// Renames an entry. If the target exists, it is replaced. A target that is a file is replaced
  /// atomically.
  void rename(const std::string& from, const std::string& to) const;
  /// Exchanges the names of two entries atomically. Returns false if the file system does not
  /// support this.
  bool exchange(const std::string& one, const std::string& other) const;
  /// Removes a file, or a folder with all of its contents. Does nothing if there is no such name.
  void remove(const std::string& name) const;
  /// Syncs the folder, so that its entries survive a power cut.
  void sync() const;

  /// True if the folder's path still leads to this folder.
  bool in_place() const;
  /// Throws an Error if the folder was removed, moved or replaced since it was opened.
  void require_in_place() const;

 private:
  Folder(std::filesystem::path path, FileDescriptor descriptor);

  std::filesystem::path path_;
  std::shared_ptr<const FileDescriptor> descriptor_;
};

}  // namespace longhand
