#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"

namespace longhand {

/// A file that appears whole or not at all, also across a crash or a power cut: bytes go to a
/// hidden temporary file in the same folder; commit() syncs it, renames it over the target and
/// syncs the folder. Without commit(), or when any step fails, the temporary file is removed and
/// an older target stays as it was.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void fail_with_errno(std::string_view step) const;

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
  std::vector<std::byte> buffer_;  // gathers small writes
};

/// True for the name of a temporary file that a killed process may have left behind.
bool is_temporary(std::string_view file_name);

/// Writes all of `text` to `target`, whole or not at all.
void write_atomically(const std::filesystem::path& target, std::string_view text);

/// Makes the names in a folder (files made, renamed, removed) survive a power cut.
void sync_folder(const std::filesystem::path& folder);

}  // namespace longhand
