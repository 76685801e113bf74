#include "nn/text/token_file.h"

#include <fstream>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/check.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace token_file_test {

using namespace longhand;
using namespace longhand::nn;

struct Fixture {
  TemporaryFolder folder;
  std::filesystem::path text = folder / "a.txt", tokens = folder / "a.tokens";
  /// Tokens 0 to 4 are a, b, c, the space and ab.
  Tokenizer tokenizer = parse_tokenizer_json(vocabulary(), "test");

  static std::string vocabulary() {
    // In the byte alphabet of GPT-2, letters stand for themselves and U+0120 stands for a space.
    return R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
      "decoder":{"type":"ByteLevel"},"model":{"type":"BPE",
      "vocab":{"a":0,"b":1,"c":2,"\u0120":3,"ab":4},"merges":["a b"]}})";
  }

  std::vector<std::int32_t> read(const TokenFile& file) const {
    std::vector<std::int32_t> all(file.size());
    file.read(0, all);
    return all;
  }
  TokenFile open(std::uint32_t sum = 7) const {
    return TokenFile::of_tokens(text, tokenizer, {.tokenizer = sum}, tokens);
  }
};

}  // namespace token_file_test

BOOST_FIXTURE_TEST_SUITE(token_file_test, Fixture)

BOOST_AUTO_TEST_CASE(bytes_are_read_from_the_text_itself) {
  write_atomically(text, "a\xff\n");
  const TokenFile file = TokenFile::of_bytes(text);
  BOOST_TEST((read(file) == std::vector{97, 255, 10}));
  BOOST_TEST(folder.count() == 1);
  BOOST_CHECK_THROW(file[3], Error);
}

BOOST_AUTO_TEST_CASE(documents_are_encoded_one_by_one_with_their_end_between_them) {
  const auto read_with = [&](const char* separator, std::vector<TokenId> end) {
    const TokenFile::Key key{.tokenizer = 7, .separator = separator, .end = std::move(end)};
    return read(TokenFile::of_tokens(text, tokenizer, key, tokens));
  };
  write_atomically(text, "abccac");
  BOOST_TEST((read(open()) == std::vector{4, 2, 2, 0, 2}));
  // The document between the two adjacent separators is empty.
  BOOST_TEST((read_with("c", {3}) == std::vector{4, 3, 3, 0, 3}));
  // The b of the separator "bc" is not merged with the a before it.
  BOOST_TEST((read_with("bc", {3, 1}) == std::vector{0, 3, 1, 2, 0, 2}));
  // With another separator, the token file is written again.
  BOOST_TEST((read_with("bc", {}) == std::vector{0, 2, 0, 2}));
  BOOST_TEST((read(open()) == std::vector{4, 2, 2, 0, 2}));
  BOOST_CHECK_THROW(read_with("c", {5}), Error);
  write_atomically(text, "abcab\xff");
  BOOST_TEST(refusal([&] { read_with("c", {3}); }).ends_with("byte 5"));
}

BOOST_AUTO_TEST_CASE(tokens_are_cached_until_the_text_or_the_tokenizer_changes) {
  write_atomically(text, "abc ab");
  BOOST_TEST((read(open()) == std::vector{4, 2, 3, 4}));
  const auto made = std::filesystem::last_write_time(tokens);
  BOOST_TEST((read(open()) == std::vector{4, 2, 3, 4}));
  BOOST_TEST((std::filesystem::last_write_time(tokens) == made));
  write_atomically(text, "c");
  BOOST_TEST((read(open()) == std::vector{2}));
  write_atomically(tokens,
                   "LHTOKENS of another version, which has more than 64 bytes of header....");
  BOOST_TEST((read(open(8)) == std::vector{2}));
}

BOOST_AUTO_TEST_CASE(files_of_another_kind_are_not_overwritten) {
  write_atomically(text, "abc");
  write_atomically(tokens, "mine");
  BOOST_CHECK_THROW(open(), Error);
  BOOST_TEST(std::filesystem::file_size(tokens) == 4u);
}

BOOST_AUTO_TEST_CASE(every_changed_byte_is_detected) {
  write_atomically(text, "abcab");
  open();
  std::string whole(std::filesystem::file_size(tokens), ' ');
  std::ifstream(tokens, std::ios::binary).read(whole.data(), std::ssize(whole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i >= 56 && i < 64) continue;  // the file format does not use these bytes
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    write_atomically(tokens, changed);
    // A file with a changed byte is refused, or it is taken for the file of another text or version
    // and rebuilt.
    try {
      BOOST_TEST((read(open()) == std::vector{4, 2, 4}));
    } catch (const Error&) {
    }
  }
}

BOOST_AUTO_TEST_CASE(broken_utf8_is_refused_with_its_position_or_replaced) {
  write_atomically(text, "ab\xff");
  const std::string message = refusal([&] { open(); });
  BOOST_TEST(message.starts_with(text.string() + ": "), message);
  BOOST_TEST(contains(message, "2"));
  BOOST_TEST(!std::filesystem::exists(tokens));
  BOOST_TEST(
      TokenFile::of_tokens(text, tokenizer, {.tokenizer = 7, .lossy = true}, tokens).size() >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
