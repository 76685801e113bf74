#include "core/crc32c.h"

#include <string>
#include <vector>
#include "tests/check.h"

#include "core/rng.h"

BOOST_AUTO_TEST_SUITE(crc32c_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(known_checksums_are_computed) {
  // Examples of RFC 3720, section B.4, and the common test with "123456789".
  BOOST_TEST(crc32c("") == 0u);
  BOOST_TEST(crc32c("123456789") == 0xE3069283u);
  BOOST_TEST(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  BOOST_TEST(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

BOOST_AUTO_TEST_CASE(tables_and_instruction_agree_at_every_length_start_and_cut) {
  Rng rng(1, Purpose::test);
  std::vector<std::byte> bytes(300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= 100; ++size) {
      const auto piece = std::span<const std::byte>(bytes).subspan(begin, size);
      const std::uint32_t whole = crc32c_by_tables(piece);
      BOOST_TEST(crc32c(piece) == whole);
      BOOST_TEST(crc32c(piece.subspan(size / 3), crc32c(piece.first(size / 3))) == whole);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
