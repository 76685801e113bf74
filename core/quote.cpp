#include "core/quote.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace longhand {
namespace {

constexpr std::size_t longest = 60;

/// Length of the UTF-8 sequence at the start of `text` (RFC 3629); 0 if the sequence is invalid.
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
  if (first == 0xe0 && byte(1) < 0xa0) return 0;   // overlong encoding
  if (first == 0xed && byte(1) >= 0xa0) return 0;  // surrogates
  if (first == 0xf0 && byte(1) < 0x90) return 0;   // overlong encoding
  if (first == 0xf4 && byte(1) >= 0x90) return 0;  // above U+10FFFF
  return length;
}

/// The ranges of code points that are escaped, each with its first and last code point: C1
/// controls, soft hyphen, joiners, fillers, zero-width and bidirectional marks, line and paragraph
/// separators, variation selectors, byte order mark, annotation and musical marks, tags.
constexpr std::array<std::array<std::uint32_t, 2>, 19> unseen{{{0x80, 0x9f},
                                                               {0xad, 0xad},
                                                               {0x34f, 0x34f},
                                                               {0x61c, 0x61c},
                                                               {0x115f, 0x1160},
                                                               {0x17b4, 0x17b5},
                                                               {0x180b, 0x180f},
                                                               {0x200b, 0x200f},
                                                               {0x2028, 0x202e},
                                                               {0x2060, 0x206f},
                                                               {0x3164, 0x3164},
                                                               {0xfe00, 0xfe0f},
                                                               {0xfeff, 0xfeff},
                                                               {0xffa0, 0xffa0},
                                                               {0xfff0, 0xfffb},
                                                               {0x13430, 0x1343f},
                                                               {0x1bca0, 0x1bca3},
                                                               {0x1d173, 0x1d17a},
                                                               {0xe0000, 0xe0fff}}};

std::uint32_t code_point(std::string_view sequence) {
  const auto first = static_cast<std::uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first;
  std::uint32_t code = first & (0x7fu >> sequence.size());
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<std::uint8_t>(c) & 0x3f);
  return code;
}

bool is_unseen(std::uint32_t code) {
  return std::ranges::any_of(
      unseen, [&](const auto& range) { return range[0] <= code && code <= range[1]; });
}

/// Moves the first character of `text` to `out` and escapes it if necessary. `text` must not be
/// empty. Returns the number of characters written.
std::size_t move_character(std::string_view& text, std::string& out) {
  const auto byte = static_cast<std::uint8_t>(text[0]);
  if (0x20 <= byte && byte < 0x7f) {  // printable ASCII, the common case
    out += text[0];
    text.remove_prefix(1);
    return 1;
  }
  std::size_t length = byte < 0x80 ? 0 : utf8_length(text);
  char escape[16];
  int written = 0;
  if (length == 0) {
    length = 1;
    written = std::snprintf(escape, sizeof escape, "\\x%02x", byte);
  } else if (const std::uint32_t code = code_point(text.substr(0, length)); is_unseen(code)) {
    written = std::snprintf(escape, sizeof escape, "\\u{%04x}", code);
  }
  const std::size_t characters = written > 0 ? static_cast<std::size_t>(written) : 1;
  out += written > 0 ? std::string_view(escape, characters) : text.substr(0, length);
  text.remove_prefix(length);
  return characters;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) move_character(text, out);
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text[0] == '\n') {
      out += '\n';
      text.remove_prefix(1);
    } else {
      move_character(text, out);
    }
  }
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  std::size_t shown = 0;
  while (!text.empty()) {
    if (shown >= longest) {
      out += "...";
      break;
    }
    if (text[0] == '"' || text[0] == '\\') out += '\\';
    shown += move_character(text, out);
  }
  return out + '"';
}

}  // namespace longhand
