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

/// A file that appears whole or not at all, also across a crash or a power cut: bytes go to a
/// hidden temporary file in the same folder; commit() syncs it, renames it over the target and
/// syncs the folder. Without commit(), or when any step fails, the temporary file is removed and
/// an older target stays as it was.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& target);
  AtomicFile(Folder folder, std::string name);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Writes over bytes that were written before.
  void rewrite(std::uint64_t offset, std::string_view text);
  void commit();

  std::filesystem::path target() const { return folder_.path() / name_; }

 private:
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void fail_with_errno(std::string_view step) const;

  Folder folder_;
  std::string name_, temporary_;
  FileDescriptor file_;
  std::vector<std::byte> buffer_;  // gathers small writes
};

/// True for the name of a temporary file that a killed process may have left behind.
bool is_temporary(std::string_view file_name);

/// Writes all of `text` to `target`, whole or not at all.
void write_atomically(const std::filesystem::path& target, std::string_view text);
void write_atomically(const Folder& folder, const std::string& name, std::string_view text);

}  // namespace longhand
