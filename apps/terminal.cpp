#include "apps/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <ostream>

#include "core/error.h"
#include "core/utf8.h"

namespace longhand::app {

bool is_rich_terminal(int descriptor) {
  const char* const plain = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && (!plain || !*plain) && kind && std::string_view(kind) != "dumb";
}

std::size_t table_columns(int descriptor) {
  if (const char* const set = std::getenv("COLUMNS")) {
    const std::string_view digits = set;
    std::size_t columns = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), columns);
    if (error == std::errc() && end == digits.data() + digits.size() && columns > 0) return columns;
  }
  winsize size = {};
  if (isatty(descriptor) != 1 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::size_t status_columns() {
  winsize size = {};
  if (!is_rich_terminal(STDERR_FILENO)) return 0;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2 ? 80 : size.ws_col;
}

void write_wrapped(std::ostream& out, std::string_view text, std::size_t column, std::size_t indent,
                   std::size_t width) {
  const auto end_line = [&] {
    out << '\n' << std::string(indent, ' ');
    column = indent;
  };
  for (bool first = true; !text.empty(); first = false) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!first && column + 1 + count_code_points(word) > width) {
      end_line();
    } else if (!first) {
      out << ' ';
      ++column;
    }
    while (column < width && indent < width && column + count_code_points(word) > width) {
      std::string_view part = first_code_points(word, width - column);
      part = part.substr(0, part.rfind(',') + 1);  // empty if the part has no comma
      if (part.empty() && column == indent) part = first_code_points(word, width - column);
      out << part;
      word.remove_prefix(part.size());
      end_line();
    }
    out << word;
    column += count_code_points(word);
  }
  out << '\n';
}

std::string bold(std::string_view words, bool rich) {
  return rich ? text("\033[1m", words, "\033[0m") : std::string(words);
}

std::string alarming(std::string_view words, bool rich) {
  return rich ? text("\033[1;31m", words, "\033[0m") : std::string(words);
}

constexpr std::chrono::seconds status_interval(10);

StatusLine::StatusLine(std::ostream& out, std::size_t columns)
    : out_(out),
      columns_(columns),
      next_(std::chrono::steady_clock::now() +
            (columns == 0 ? status_interval : std::chrono::seconds(0))) {}

StatusLine::~StatusLine() {
  if (open_) out_ << "\r\033[K" << std::flush;
}

void StatusLine::show(std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  if (columns_ == 0) {
    next_ = now + status_interval;
    out_ << text << std::endl;
    return;
  }
  next_ = now + std::chrono::milliseconds(100);
  // A line that fills the last column would wrap.
  out_ << '\r' << text.substr(0, columns_ - 1) << "\033[K" << std::flush;
  open_ = true;
}

}  // namespace longhand::app
