#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"

namespace longhand {

/// All of a regular file of at most `most` bytes. A longer one is refused as soon as that many are
/// read, whatever size it claims.
std::string read_text(const std::filesystem::path& path, std::size_t most);
/// The same for an open file; `name` begins the messages.
std::string read_text(const FileDescriptor& file, const std::string& name, std::size_t most);
/// The same for a file that the user names on the command line, which may also be a pipe.
std::string read_text_or_pipe(const std::filesystem::path& path, std::size_t most);

/// Reads the lines of a file or pipe. A line longer than `longest` bytes is refused when that many
/// are read, so no more is ever in memory.
class LineReader {
 public:
  LineReader(const std::filesystem::path& path, std::size_t longest);
  /// The lines of an open file; `name` begins the messages.
  LineReader(FileDescriptor file, std::string name, std::size_t longest);

  /// The next line without its line break, valid until the next call; empty at the end.
  std::optional<std::string_view> next();
  std::int64_t number() const { return number_; }  // number of the last line, from 1
  /// True after the last line if it has no line break, as a killed writer leaves it.
  bool cut() const { return cut_; }

 private:
  std::string name_;
  FileDescriptor file_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0;  // start of the unread part
  bool at_end_ = false;    // the file has no more data for the buffer
  bool cut_ = false;
  std::int64_t number_ = 0;
};

}  // namespace longhand
