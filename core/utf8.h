#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhand {

/// Index of the first byte that is not part of valid UTF-8; npos if the whole text is valid.
std::size_t find_broken_utf8(std::string_view text);

/// Replaces invalid bytes by U+FFFD. As Unicode recommends, an incomplete code point is replaced by
/// one U+FFFD, however many bytes it has.
std::string replace_broken_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

struct CodePoint {
  char32_t value;
  std::size_t length;  // number of bytes
};

/// Decodes the code point at the beginning of `text`. The text must be valid UTF-8 there.
inline CodePoint decode_utf8(const char* text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) return {(first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(first & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

/// True if the byte is a continuation byte, which is not the first byte of a code point.
inline bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// The number of code points of a valid text.
std::size_t count_code_points(std::string_view text);
/// The first `count` characters of a text in UTF-8, or the whole text if it is shorter.
std::string_view first_code_points(std::string_view text, std::size_t count);

}  // namespace longhand
