#include "nn/text/byte_map.h"

#include "core/utf8.h"

namespace longhand::nn {

const ByteMap byte_map;

ByteMap::ByteMap() {
  byte_of_.fill(none);
  char32_t next = 256;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    character_of_[byte] = itself ? byte : next++;
    byte_of_[character_of_[byte]] = byte;
  }
}

std::optional<std::string> ByteMap::bytes(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.data() + at);
    if (point.value >= characters || byte_of_[point.value] == none) return std::nullopt;
    out += static_cast<char>(byte_of_[point.value]);
    at += point.length;
  }
  return out;
}

std::string ByteMap::text(std::string_view bytes) const {
  std::string out;
  for (const char byte : bytes) append_utf8(out, character_of_[static_cast<unsigned char>(byte)]);
  return out;
}

}  // namespace longhand::nn
