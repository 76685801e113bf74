#include "tasks/record_file.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "tasks/answers.h"

namespace longhand::tasks {

RecordFile::RecordFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {
  Line line{.number = 1};
  bool is_blank = true;
  const auto end_line = [&](std::uint64_t end) {
    line.end = end;
    require_short(line);
    if (!is_blank) lines_.push_back(line);
    line = {.begin = end + 1, .number = line.number + 1};
    is_blank = true;
  };
  std::string piece;
  for (std::uint64_t begin = 0; begin < file_.size(); begin += piece.size()) {
    piece.resize(std::min<std::uint64_t>(file_.size() - begin, 1 << 20));
    file_.read(begin, std::as_writable_bytes(std::span(piece)));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const char c = piece[i];
      if (c == '\n') {
        end_line(begin + i);
      } else if (c != ' ' && c != '\t' && c != '\r') {
        is_blank = false;
      }
    }
  }
  if (line.begin < file_.size()) end_line(file_.size());
}

std::string RecordFile::line(std::uint64_t record) const {
  const Line& place = lines_.at(record);
  std::string line(place.end - place.begin, ' ');
  file_.read(place.begin, std::as_writable_bytes(std::span(line)));
  return line;
}

std::string RecordFile::place(std::uint64_t record) const {
  return text(name_, ':', lines_.at(record).number);
}

void RecordFile::require_short(const Line& line) const {
  LONGHAND_CHECK(line.end - line.begin <= Answer::longest_line, name_, ':', line.number,
                 ": expected a line of at most ", Answer::longest_line, " bytes, got ",
                 line.end - line.begin);
}

}  // namespace longhand::tasks
