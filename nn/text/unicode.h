#pragma once

#include <array>
#include <cstdint>

#include "core/utf8.h"
#include "nn/text/unicode_tables.h"

namespace longhand::nn {

/// What the patterns that cut texts into words ask of a code point: \p{L}, \p{N}, \s, as Unicode
/// 16.0 has them.
enum class CodeClass : std::uint8_t { other, letter, number, space };

inline CodeClass class_of(char32_t c) {
  return CodeClass{
      unicode_tables::class_value[unicode_tables::class_block[c >> 8] * 256u + (c & 255)]};
}

/// 0 for a code point that normalization leaves alone wherever it stands; see unicode_tables.h.
inline std::uint8_t attention_of(char32_t c) {
  return unicode_tables::attention_value[unicode_tables::attention_block[c >> 8] * 256u +
                                         (c & 255)];
}

/// The classes of ASCII, a byte each; `beyond` for bytes of longer code points.
inline constexpr std::uint8_t beyond = 255;
inline constexpr auto byte_classes = [] {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool space = (c >= '\t' && c <= '\r') || c == ' ';
    classes[c] = static_cast<std::uint8_t>(letter                 ? CodeClass::letter
                                           : c >= '0' && c <= '9' ? CodeClass::number
                                           : space                ? CodeClass::space
                                                                  : CodeClass::other);
    if (c >= 0x80) classes[c] = beyond;
  }
  return classes;
}();

struct ClassedCodePoint {
  CodeClass value;
  std::size_t length;  // bytes
};

/// The class of the code point at `text`.
inline ClassedCodePoint class_at(const char* text) {
  const std::uint8_t known = byte_classes[static_cast<unsigned char>(*text)];
  if (known != beyond) return {CodeClass{known}, 1};
  const CodePoint point = decode_utf8(text);
  return {class_of(point.value), point.length};
}

}  // namespace longhand::nn
