#include "core/utf8.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace longhand {
namespace {

struct Sequence {
  // The number of bytes of a valid code point. If the code point is not valid, the number of bytes
  // that could begin a valid one.
  std::size_t length;
  bool whole;
};

/// Examines the UTF-8 sequence at `place`. The valid range of its second byte depends on its first
/// byte. These ranges exclude overlong forms, surrogates and code points above U+10FFFF.
Sequence sequence_at(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(place);
  if (first < 0x80) return {1, true};
  if (first < 0xc2 || first > 0xf4) return {1, false};
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < length; ++i) {
    if (place + i == text.size()) return {i, false};
    const unsigned char next = byte(place + i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xbf)) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::size_t find_broken_utf8(std::string_view text) {
  std::size_t place = 0;
  while (place < text.size()) {
    std::uint64_t eight = 0;
    while (place + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + place, sizeof eight);
      const std::uint64_t beyond_ascii = eight & 0x8080808080808080u;
      if (beyond_ascii) {
        place += static_cast<std::size_t>(std::countr_zero(beyond_ascii)) / 8;
        break;
      }
      place += sizeof eight;
    }
    if (place == text.size()) break;
    const Sequence sequence = sequence_at(text, place);
    if (!sequence.whole) return place;
    place += sequence.length;
  }
  return std::string_view::npos;
}

std::string replace_broken_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t broken = find_broken_utf8(text);
    out += text.substr(0, broken);
    if (broken == std::string_view::npos) break;
    out += "\xef\xbf\xbd";
    text.remove_prefix(broken + sequence_at(text, broken).length);
  }
  return out;
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !continues_utf8(c); }));
}

std::string_view first_code_points(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && (count > 0 || continues_utf8(text[end]))) {
    if (!continues_utf8(text[end])) --count;
    ++end;
  }
  return text.substr(0, end);
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xc0 | c >> 6), tail(0)};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  } else {
    out += {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
  }
}

}  // namespace longhand
