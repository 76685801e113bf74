#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/utf8.h"

namespace longhand::nn {

/// The classes of code points that word patterns distinguish: \p{L}, \p{N} and \s of Unicode 16.0.
enum class CodeClass : std::uint8_t { other, letter, number, space };

// The class of every code point; computed on first use.
const std::vector<CodeClass>& code_classes();
inline CodeClass class_of(char32_t c) {
  static const CodeClass* const all = code_classes().data();
  return all[c];
}

/// code_attention() contains, for each code point, how normalization treats it. 0: the code point
/// is never decomposed or combined with an earlier one. 1 .. 254: its combining class. `attended`:
/// its combining class is 0, but it may be combined with an earlier code point or be decomposed.
inline constexpr std::uint8_t attended = 255;
const std::vector<std::uint8_t>& code_attention();
inline std::uint8_t attention_of(char32_t c) {
  static const std::uint8_t* const all = code_attention().data();
  return all[c];
}

/// byte_classes contains the CodeClass of each ASCII character. All bytes of other characters have
/// the value `beyond`.
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
  std::size_t length;  // number of bytes of the code point
};

/// The class of the code point at `text`.
inline ClassedCodePoint class_at(const char* text) {
  const std::uint8_t known = byte_classes[static_cast<unsigned char>(*text)];
  if (known != beyond) return {CodeClass{known}, 1};
  const CodePoint point = decode_utf8(text);
  return {class_of(point.value), point.length};
}

}  // namespace longhand::nn
