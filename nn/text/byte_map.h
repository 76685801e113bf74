#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longhand::nn {

/// The printable characters that represent bytes in GPT-2's tokenizer files. The bytes 33-126,
/// 161-172 and 174-255 are written as the code points of the same value. The other 68 bytes are
/// written as U+0100, U+0101, ... in ascending order.
class ByteMap {
 public:
  ByteMap();

  /// The bytes that a token's text in a tokenizer file represents. No value if the text contains a
  /// character that represents no byte.
  std::optional<std::string> bytes(std::string_view text) const;
  /// The inverse of bytes().
  std::string text(std::string_view bytes) const;

 private:
  static constexpr char32_t characters = 256 + 68;
  static constexpr std::uint16_t none = 256;
  std::array<char32_t, 256> character_of_;
  std::array<std::uint16_t, characters> byte_of_;
};

extern const ByteMap byte_map;

}  // namespace longhand::nn
