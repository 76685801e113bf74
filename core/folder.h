#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/regular_file.h"

namespace longhand {

/// A folder that is held open. Names are looked up in this folder even after it was moved or
/// another folder took its path. Copies share the descriptor. Names contain no '/'.
class Folder {
 public:
  /// Opens an existing folder. Throws an Error if that fails.
  explicit Folder(std::filesystem::path path);
  /// Creates the folder and its parents first if they are missing.
  static Folder make(const std::filesystem::path& path);
  /// A folder inside this one, created if it is missing.
  Folder make_folder(const std::string& name) const;
  /// A folder below this one, opened name by name without following a link or "..".
  Folder below(const std::filesystem::path& relative) const;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_->get(); }

  /// Opens a file with flags and mode as in open(2). If that fails, the result is not valid and
  /// errno is set.
  FileDescriptor open(const std::string& name, int flags, unsigned mode = 0666) const;
  /// Opens a regular file. Returns an invalid descriptor if the name does not exist. Throws an
  /// Error if it is not a regular file, or if it is a link and links are refused.
  FileDescriptor open_file(const std::string& name, int flags, Links links,
                           unsigned mode = 0666) const {
    return open_regular_file(descriptor(), path_, name, flags, mode, links);
  }
  /// A new empty file to write to. A file, pipe or link of that name is removed first, so nothing
  /// is written through it.
  FileDescriptor create_file(const std::string& name) const;
  /// The contents of a regular file of at most `most` bytes; empty if it is missing.
  std::optional<std::string> read(const std::string& name, std::size_t most,
                                  Links links = Links::follow) const;
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;  // names of all files and folders, sorted

  /// Replaces an existing target; a file is replaced atomically.
  void rename(const std::string& from, const std::string& to) const;
  /// Exchanges two names atomically. Returns false if the file system cannot do that.
  bool exchange(const std::string& one, const std::string& other) const;
  /// Removes a file, or a folder with all of its contents. Does nothing if it is missing.
  void remove(const std::string& name) const;
  /// Makes the names in the folder survive a power cut.
  void sync() const;

  /// True if its path still leads to this folder.
  bool in_place() const;
  /// Throws an Error if the folder was removed, moved or replaced since it was opened.
  void require_in_place() const;

 private:
  Folder(std::filesystem::path path, FileDescriptor descriptor);

  std::filesystem::path path_;
  std::shared_ptr<const FileDescriptor> descriptor_;
};

}  // namespace longhand
