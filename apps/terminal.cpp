#include "apps/terminal.h"

#include <unistd.h>

#include <cstdlib>

#include "core/error.h"

namespace longhand::app {

bool is_rich_terminal(int descriptor) {
  const char* const plain = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && (!plain || !*plain) && kind && std::string_view(kind) != "dumb";
}

std::string bold(std::string_view words, bool rich) {
  return rich ? text("\033[1m", words, "\033[0m") : std::string(words);
}

std::string alarming(std::string_view words, bool rich) {
  return rich ? text("\033[1;31m", words, "\033[0m") : std::string(words);
}

}  // namespace longhand::app
