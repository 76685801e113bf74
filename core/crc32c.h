#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace longhand {

/// CRC-32C (Castagnoli: polynomial 0x1EDC6F41, reflected, inverted before and after). `before` is
/// the checksum of the bytes that precede `bytes`. If the processor has a CRC instruction, it is
/// used.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
inline std::uint32_t crc32c(std::string_view text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text)), before);
}

/// Like crc32c(), but computed with tables on every processor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace longhand
