#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/regular_file.h"

namespace longhand {

/// A folder held open. Names are looked up in this folder itself, even after it was moved or
/// another folder took its path. Copies share the descriptor. Names are single ones, without '/'.
class Folder {
 public:
  /// An existing one; refused where it cannot be opened.
  explicit Folder(std::filesystem::path path);
  /// Makes it first, with its parents, where it is missing.
  static Folder make(const std::filesystem::path& path);
  /// A folder in this one, made where it is missing.
  Folder make_folder(const std::string& name) const;
  /// A folder below this one, opened name by name without following a link or "..".
  Folder below(const std::filesystem::path& relative) const;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_->get(); }

  /// Opens a file: flags and mode as of open(2). Not valid (errno set) where that fails.
  FileDescriptor open(const std::string& name, int flags, unsigned mode = 0666) const;
  /// Opens a regular file. Not valid where nothing has the name; refused where something other than
  /// a file has it, or a link if links are refused.
  FileDescriptor open_file(const std::string& name, int flags, Links links,
                           unsigned mode = 0666) const {
    return open_regular_file(descriptor(), path_, name, flags, mode, links);
  }
  /// A new empty file to write to. A file, pipe or link of that name is removed first, so nothing
  /// is written through it.
  FileDescriptor create_file(const std::string& name) const;
  /// All of a regular file of at most `most` bytes; nothing where it is missing.
  std::optional<std::string> read(const std::string& name, std::size_t most,
                                  Links links = Links::follow) const;
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;  // of all that is in it, sorted

  /// Replaces what has the new name, in one step where that is a file.
  void rename(const std::string& from, const std::string& to) const;
  /// Two names change places in one step. False where the file system cannot do that.
  bool exchange(const std::string& one, const std::string& other) const;
  /// A file, or a folder with all that is in it. Nothing where it is missing.
  void remove(const std::string& name) const;
  /// Makes the names in the folder survive a power cut.
  void sync() const;

  /// Whether its path still leads to it.
  bool in_place() const;
  /// Refused where it was removed, moved or replaced since it was opened.
  void require_in_place() const;

 private:
  Folder(std::filesystem::path path, FileDescriptor descriptor);

  std::filesystem::path path_;
  std::shared_ptr<const FileDescriptor> descriptor_;
};

}  // namespace longhand
