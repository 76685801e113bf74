#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"

namespace longhand {

/// The contents of a regular file with at most `most` bytes. If the file has more bytes, throws an
/// Error. The limit applies to the bytes that are read, not to the size that the system reports.
std::string read_text(const std::filesystem::path& path, std::size_t most);
/// Like read_text(path, most), but for an open file. Error messages begin with `name`.
std::string read_text(const FileDescriptor& file, const std::string& name, std::size_t most);
/// Like read_text(path, most), but for a file that the user names on the command line. The file may
/// also be a pipe.
std::string read_text_or_pipe(const std::filesystem::path& path, std::size_t most);

/// Reads the lines of a file or pipe. Throws an Error if a line is longer than `longest` bytes, so
/// a huge file without line breaks cannot exhaust the memory.
class LineReader {
 public:
  LineReader(const std::filesystem::path& path, std::size_t longest);
  /// Reads the lines of an open file. Messages begin with `name`.
  LineReader(FileDescriptor file, std::string name, std::size_t longest);

  /// The next line without its line break. It is valid until the next call. Returns no value at the
  /// end of the file.
  std::optional<std::string_view> next();
  /// Number of the line that next() returned last. The first line has the number 1.
  std::int64_t number() const { return number_; }
  /// True after the last line if this line does not end with a line break, for example because the
  /// program that wrote it was killed.
  bool cut() const { return cut_; }

 private:
  std::string name_;
  FileDescriptor file_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0;  // start of the unread part of the buffer
  bool at_end_ = false;    // true after the last bytes were read
  bool cut_ = false;
  std::int64_t number_ = 0;
};

}  // namespace longhand
