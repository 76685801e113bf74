#include "core/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/regular_file.h"

namespace longhand {
namespace {

constexpr std::size_t piece = 1 << 16;  // bytes read at a time

/// Opens a file or pipe. If it is a pipe, waits for the pipe's other end.
FileDescriptor open_to_read(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  LONGHAND_CHECK(file.valid(), path.native(), ": cannot be read: ", std::strerror(errno));
  struct stat status {};
  LONGHAND_CHECK(::fstat(file.get(), &status) != 0 || !S_ISDIR(status.st_mode), path.native(),
                 ": expected a file, got a folder");
  return file;
}

/// Appends up to `count` bytes of the file to the text. Returns the number of bytes that were read,
/// which is 0 at the end of the file.
std::size_t read_more(const FileDescriptor& file, const std::string& name, std::string& text,
                      std::size_t count) {
  const std::size_t before = text.size();
  text.resize(before + count);
  ssize_t got = 0;
  do {
    got = ::read(file.get(), text.data() + before, count);
  } while (got < 0 && errno == EINTR);
  const int reason = errno;
  text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  LONGHAND_CHECK(got >= 0, name, ": cannot be read: ", std::strerror(reason));
  return static_cast<std::size_t>(got);
}

}  // namespace

std::string read_text(const FileDescriptor& file, const std::string& name, std::size_t most) {
  std::string text;
  while (read_more(file, name, text, std::min(piece, most + 1 - text.size())) > 0) {
    LONGHAND_CHECK(text.size() <= most, name, ": expected at most ", most, " bytes, got more");
  }
  return text;
}

std::string read_text(const std::filesystem::path& path, std::size_t most) {
  return read_text(open_regular_file(path), path.native(), most);
}

std::string read_text_or_pipe(const std::filesystem::path& path, std::size_t most) {
  return read_text(open_to_read(path), path.native(), most);
}

LineReader::LineReader(const std::filesystem::path& path, std::size_t longest)
    : LineReader(open_to_read(path), path.native(), longest) {}

LineReader::LineReader(FileDescriptor file, std::string name, std::size_t longest)
    : name_(std::move(name)), file_(std::move(file)), longest_(longest) {}

std::optional<std::string_view> LineReader::next() {
  ++number_;
  for (std::size_t searched = begin_;;) {
    const std::size_t end = buffer_.find('\n', searched);
    const std::size_t stop = std::min(end, buffer_.size());
    LONGHAND_CHECK(stop - begin_ <= longest_, name_, ':', number_, ": expected a line of at most ",
                   longest_, " bytes, got more");
    const std::string_view line(buffer_.data() + begin_, stop - begin_);
    if (end != std::string::npos) {
      begin_ = end + 1;
      return line;
    }
    if (at_end_) {
      if (line.empty()) return std::nullopt;
      cut_ = true;
      begin_ = stop;
      return line;
    }
    buffer_.erase(0, begin_);
    searched = buffer_.size();
    begin_ = 0;
    at_end_ = read_more(file_, name_, buffer_, piece) == 0;
  }
}

}  // namespace longhand
