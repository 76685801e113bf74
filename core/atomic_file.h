#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"
#include "core/folder.h"

namespace longhand {

/// Writes a file that appears completely or not at all, even after a crash or power cut. Bytes are
/// first written to a hidden temporary file in the same folder. commit() syncs the temporary file,
/// renames it to the target and syncs the folder. Without commit(), or if one of its steps fails,
/// the temporary file is removed, and an existing target is not changed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& target);
  AtomicFile(Folder folder, std::string name);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites bytes that were already written, from `offset` on.
  void rewrite(std::uint64_t offset, std::string_view text);
  void commit();

  std::filesystem::path target() const { return folder_.path() / name_; }

 private:
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void fail_with_errno(std::string_view step) const;

  Folder folder_;
  std::string name_, temporary_;
  FileDescriptor file_;
  std::vector<std::byte> buffer_;  // small writes that are not yet in the file
};

/// True if `file_name` is the name of a temporary file of AtomicFile. A process that is killed may
/// leave such a file behind.
bool is_temporary(std::string_view file_name);

/// Writes `text` to `target`. The file appears completely or not at all.
void write_atomically(const std::filesystem::path& target, std::string_view text);
void write_atomically(const Folder& folder, const std::string& name, std::string_view text);

}  // namespace longhand
