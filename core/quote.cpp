#include "core/quote.h"

#include <cstddef>
#include <cstdint>

namespace longhand {
namespace {

constexpr std::size_t longest = 60;

/// The length of the UTF-8 sequence at the start of `text` (RFC 3629), 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
  if (first == 0xed && byte(1) >= 0xa0) return 0;  // surrogates
  if (first == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (first == 0xf4 && byte(1) >= 0x90) return 0;  // past U+10FFFF
  return length;
}

}  // namespace

std::string quote(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == longest) {
      out += "...";
      break;
    }
    const auto byte = static_cast<std::uint8_t>(text[0]);
    const std::size_t length = byte < 0x20 || byte == 0x7f ? 0 : utf8_length(text);
    if (length == 0) {
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 15];
      text.remove_prefix(1);
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out + '"';
}

}  // namespace longhand
