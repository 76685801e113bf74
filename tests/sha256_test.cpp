#include "core/sha256.h"

#include <algorithm>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/rng.h"

BOOST_AUTO_TEST_SUITE(sha256_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(the_examples_of_the_standard_have_their_hashes) {
  // Examples of FIPS 180-2, B.1 to B.3, and the empty message of NIST's test vectors.
  const std::vector<std::pair<std::string, std::string>> examples{
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [message, hash] : examples) {
    BOOST_TEST(sha256(message) == hash);
    Sha256 plain = Sha256::by_loops();
    plain.add(message);
    BOOST_TEST(plain.finish() == hash);
  }
}

BOOST_AUTO_TEST_CASE(instructions_agree_with_loops_at_every_length_start_and_cut) {
  Rng rng(1, Purpose::test);
  std::vector<std::byte> bytes(2000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t size = i < 300 ? i : rng.below(1900);
    auto piece = std::span<const std::byte>(bytes).subspan(rng.below(100), size);
    Sha256 plain = Sha256::by_loops(), whole, in_pieces;
    plain.add(piece);
    whole.add(piece);
    while (!piece.empty()) {
      const std::size_t part = std::min<std::size_t>(piece.size(), rng.below(200));
      in_pieces.add(piece.first(part));
      piece = piece.subspan(part);
    }
    const std::string hash = plain.finish();
    BOOST_TEST(whole.finish() == hash);
    BOOST_TEST(in_pieces.finish() == hash);
  }
}

BOOST_AUTO_TEST_SUITE_END()
