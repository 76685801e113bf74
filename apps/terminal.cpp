#include "apps/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "core/error.h"

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

std::string bold(std::string_view words, bool rich) {
  return rich ? text("\033[1m", words, "\033[0m") : std::string(words);
}

std::string alarming(std::string_view words, bool rich) {
  return rich ? text("\033[1;31m", words, "\033[0m") : std::string(words);
}

}  // namespace longhand::app
