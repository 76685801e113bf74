#include "tasks/escapes.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {

std::string unescaped(const OptionValues& options, std::string_view name) {
  const std::string& written = options.text(name);
  std::string out;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\') {
      LONGHAND_CHECK(written[i] != '\n', "task ", options.task(), ": option ", name,
                     ": expected \\n in place of a line break, got a line break");
      out += written[i];
      continue;
    }
    const char kind = ++i < written.size() ? written[i] : '\0';
    unsigned byte = 0;
    if (kind == 'x') {
      const char* const digits = written.data() + i + 1;
      const std::size_t left = written.size() - i - 1;
      const auto [end, error] =
          std::from_chars(digits, digits + std::min<std::size_t>(2, left), byte, 16);
      LONGHAND_CHECK(error == std::errc() && end == digits + 2, "task ", options.task(),
                     ": option ", name, ": expected two hexadecimal digits after \\x in ",
                     quote(written));
      out += static_cast<char>(byte);
      i += 2;
      continue;
    }
    constexpr std::string_view kinds = "ntrs\\", meanings = "\n\t\r \\";
    const std::size_t place = kinds.find(kind);
    LONGHAND_CHECK(place != std::string_view::npos, "task ", options.task(), ": option ", name,
                   ": expected \\n, \\t, \\r, \\s, \\\\ or \\xHH, got ", quote(written));
    out += meanings[place];
  }
  return out;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kinds = "ntrs\\", meanings = "\n\t\r \\", digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t place = meanings.find(c); place != std::string_view::npos) {
      out += {'\\', kinds[place]};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace longhand::tasks
