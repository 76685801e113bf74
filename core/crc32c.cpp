#include "core/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace longhand {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

using Table = std::array<std::uint32_t, 256>;

/// tables[k][b] is the CRC remainder of byte b followed by k zero bytes. With these tables, eight
/// bytes are processed in one step.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
constexpr std::array<Table, 8> tables = make_tables();

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

#if defined(__x86_64__)
#define LONGHAND_CRC32C_INSTRUCTION __attribute__((target("sse4.2")))
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
LONGHAND_CRC32C_INSTRUCTION std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_ia32_crc32di(crc, word));
}
LONGHAND_CRC32C_INSTRUCTION std::uint32_t add_byte(std::uint32_t crc, std::byte byte) {
  return __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(byte));
}
#elif defined(__aarch64__) && defined(__linux__)
#define LONGHAND_CRC32C_INSTRUCTION __attribute__((target("+crc")))
bool has_instruction() { return (getauxval(AT_HWCAP) & (1u << 7)) != 0; }  // bit 7: HWCAP_CRC32
LONGHAND_CRC32C_INSTRUCTION std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) {
  return __builtin_aarch64_crc32cx(crc, word);
}
LONGHAND_CRC32C_INSTRUCTION std::uint32_t add_byte(std::uint32_t crc, std::byte byte) {
  return __builtin_aarch64_crc32cb(crc, static_cast<unsigned char>(byte));
}
#endif

#if defined(LONGHAND_CRC32C_INSTRUCTION)
LONGHAND_CRC32C_INSTRUCTION std::uint32_t by_instruction(std::span<const std::byte> bytes,
                                                         std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) crc = add_word(crc, word_at(bytes.data()));
  for (const std::byte byte : bytes) crc = add_byte(crc, byte);
  return ~crc;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = word_at(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][word >> (8 * k) & 0xff];
  }
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(LONGHAND_CRC32C_INSTRUCTION)
  static const bool instruction = has_instruction();
  if (instruction) return by_instruction(bytes, before);
#endif
  return crc32c_by_tables(bytes, before);
}

}  // namespace longhand
