#include <cctype>
#include <chrono>
#include "tests/check.h"

#include "core/error.h"
#include "core/json.h"
#include "core/rng.h"
#include "nn/text/bpe_trainer.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/contents.h"
#include "tests/golden.h"
#include "tests/paths.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(tokenizer_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// Ids and texts computed by Hugging Face's tokenizers (golden/tokenizer_ids.py).
const Json& golden() {
  static const Json all = golden_json("tokenizer_ids");
  return all;
}

std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list) ids.push_back(static_cast<TokenId>(id.integer()));
  return ids;
}

Tokenizer tokenizer_of(const Json& kind) {
  return parse_tokenizer_json(kind["tokenizer"].dump(), "golden");
}

}  // namespace

BOOST_AUTO_TEST_CASE(ids_and_decoded_texts_equal_those_of_hugging_face) {
  BOOST_TEST(golden()["tokenizers"].members().size() == 7u);
  for (const auto& [name, kind] : golden()["tokenizers"].members()) {
    const Tokenizer tokenizer = tokenizer_of(kind);
    Encoder encoder(tokenizer);
    // Each text is encoded twice, because cached words must give the same result.
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < golden()["texts"].size(); ++i) {
        const std::string& text = golden()["texts"][i].string();
        BOOST_TEST_CONTEXT(name << ", text " << i << ": " << text) {
          const std::vector<TokenId> ids = ids_of(kind["ids"][i]), bare = ids_of(kind["bare"][i]);
          BOOST_TEST(encoder.encode(text) == ids, boost::test_tools::per_element());
          BOOST_TEST(encoder.encode(text, {.around = false, .ranges = false}) == bare,
                     boost::test_tools::per_element());
          BOOST_TEST(tokenizer.decode(ids) == kind["decoded"][i].string());
          BOOST_TEST(tokenizer.decode(ids, false) == kind["plain"][i].string());
        }
      }
    }
    for (std::size_t i = 0; i < kind["mixed"].size(); ++i) {
      BOOST_TEST(tokenizer.decode(ids_of(kind["mixed"][i])) == kind["mixed_decoded"][i].string());
    }
  }
}

BOOST_AUTO_TEST_CASE(byte_ranges_cover_the_text_and_ids_are_the_same) {
  for (const auto& [name, kind] : golden()["tokenizers"].members()) {
    const Tokenizer tokenizer = tokenizer_of(kind);
    Encoder encoder(tokenizer);
    for (const Json& line : golden()["texts"]) {
      const std::string& text = line.string();
      std::vector<TokenId> ids;
      std::vector<ByteRange> ranges;
      encoder.encode(text, {.around = false, .ranges = true}, [&](auto some, auto where) {
        ids.insert(ids.end(), some.begin(), some.end());
        ranges.insert(ranges.end(), where.begin(), where.end());
      });
      BOOST_TEST_CONTEXT(name << ": " << text) {
        BOOST_TEST(ids == encoder.encode(text, {.around = false, .ranges = false}),
                   boost::test_tools::per_element());
        BOOST_REQUIRE(ids.size() == ranges.size());
        std::size_t end = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const auto [first, last] = ranges[i];
          BOOST_TEST(first <= last);
          BOOST_TEST(last <= text.size());
          const bool nfc = name == "qwen2" || name == "gpt_neox";
          // Of the tokenizers that do not normalize the text, only smollm2 drops bytes. The byte
          // ranges of the others have no gaps.
          if (!nfc && name != "smollm2") BOOST_TEST(first <= end);
          BOOST_TEST(last >= end);
          end = last;
          const std::string part = text.substr(first, last - first);
          const std::string bytes = tokenizer.token_bytes(ids[i]);
          if (name == "gpt2" || name == "llama3") BOOST_TEST(bytes == part);
          if (name == "smollm2") {  // smollm2 drops some bytes, between tokens or within a token
            BOOST_TEST(part.front() == bytes.front());
            BOOST_TEST(part.back() == bytes.back());
          }
        }
        if (name != "smollm2") BOOST_TEST(end == text.size());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_byte_token_stands_for_one_byte) {
  const Tokenizer tokenizer = tokenizer_of(golden()["tokenizers"]["gemma"]);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const std::string name = text("<0x", digits[byte / 16], digits[byte % 16], ">");
    const std::optional<TokenId> id = tokenizer.parts().tokens.find(name);
    BOOST_REQUIRE(id.has_value());
    BOOST_TEST(tokenizer.token_bytes(*id) == std::string(1, static_cast<char>(byte)));
  }
}

BOOST_AUTO_TEST_CASE(dropped_bytes_around_a_token_are_outside_its_range) {
  Json whole = golden()["tokenizers"]["smollm2"]["tokenizer"];
  Json::Object vocabulary;
  for (const auto& [token, id] : whole["model"]["vocab"].members()) {
    if (token.find('b') == std::string::npos) vocabulary.emplace_back(token, id);
  }
  Json::Array merges;
  for (const Json& merge : whole["model"]["merges"]) {
    if (merge.dump().find('b') == std::string::npos) merges.push_back(merge);
  }
  whole["model"]["vocab"] = Json(std::move(vocabulary));
  whole["model"]["merges"] = Json(std::move(merges));
  const Tokenizer tokenizer = parse_tokenizer_json(whole.dump(), "without b");
  const auto tokens = [&](std::string_view text) {
    std::string all;
    Encoder(tokenizer).encode(text, {.around = false, .ranges = true}, [&](auto ids, auto ranges) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        all += longhand::text(i == 0 ? "" : " ", tokenizer.token_bytes(ids[i]), ranges[i].begin,
                              '-', ranges[i].end);
      }
    });
    return all;
  };
  BOOST_TEST(tokens("ca") == "c0-1 a1-2");
  BOOST_TEST(tokens("bcbbab") == "c1-2 a4-5");
  BOOST_TEST(tokens("cbabf") == "c0-1 af2-5");  // a merge joins the bytes around a dropped byte
  BOOST_TEST(tokens("bb") == "");
}

BOOST_AUTO_TEST_CASE(splitting_a_long_text_changes_no_id) {
  std::string text, end;
  for (int i = 0; text.size() < 600000; ++i) {
    for (const Json& line : golden()["texts"]) {
      if (line.string().find("  ") == std::string::npos) text += line.string();
      text += i % 3 ? " x" : "\u00e9";
    }
  }
  for (const auto& [name, kind] : golden()["tokenizers"].members()) {
    const Tokenizer tokenizer = tokenizer_of(kind);
    Encoder encoder(tokenizer);
    const std::vector<TokenId> whole = encoder.encode(text, {.around = false, .ranges = false});
    // Each part begins at a special token and is so short that the encoder does not split it
    // further.
    std::vector<TokenId> joined;
    const std::string_view mark = "<|end|>";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = std::min(text.find(mark, at + 1), text.size());
      BOOST_REQUIRE(next - at < 100000);
      const auto part =
          encoder.encode(text.substr(at, next - at), {.around = false, .ranges = false});
      joined.insert(joined.end(), part.begin(), part.end());
      at = next;
    }
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(whole == joined); }
    // `plain` is the text without special tokens, because every '<' is replaced. The encoder splits
    // `text` at its special tokens, but must split the long text `plain` at other places.
    std::string plain = text;
    for (std::size_t at = 0; (at = plain.find('<', at)) != std::string::npos;) plain[at] = ',';
    const auto pieces = encoder.encode(plain, {.around = false, .ranges = false});
    BOOST_TEST(tokenizer.decode(pieces).size() > 0u);
    std::vector<TokenId> ranged;
    encoder.encode(plain, {.around = false, .ranges = true},
                   [&](auto some, auto) { ranged.insert(ranged.end(), some.begin(), some.end()); });
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(pieces == ranged); }
  }
}

namespace {

struct Encoded {
  std::vector<TokenId> ids, ids_alone;
  std::vector<ByteRange> ranges;
  std::uint64_t dropped = 0;
  bool operator==(const Encoded&) const = default;
};

Encoded encoded(const Tokenizer& tokenizer, std::string_view text, std::size_t piece) {
  Encoder encoder(tokenizer, piece);
  Encoded all;
  encoder.encode(text, {.around = false, .ranges = true}, [&](auto some, auto where) {
    all.ids.insert(all.ids.end(), some.begin(), some.end());
    all.ranges.insert(all.ranges.end(), where.begin(), where.end());
  });
  all.dropped = encoder.dropped_bytes();
  all.ids_alone = encoder.encode(text, {.around = false, .ranges = false});
  return all;
}

// A piece size so large that no word is split into pieces.
constexpr std::size_t whole_words = std::size_t{1} << 40;

/// A byte-level tokenizer. Its tokens are the first `letters` letters of the alphabet and the
/// tokens that the merges make of them.
Tokenizer tokenizer_of_merges(int letters, const std::vector<std::pair<int, int>>& merges) {
  std::vector<std::string> tokens;
  for (int i = 0; i < letters; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
  Json vocabulary = Json::object(), pairs = Json::array();
  for (const auto& [left, right] : merges) {
    const std::string &a = tokens[static_cast<std::size_t>(left)],
                      &b = tokens[static_cast<std::size_t>(right)];
    pairs.push_back(Json::Array{a, b});
    tokens.push_back(a + b);
  }
  for (const std::string& token : tokens) {
    if (!vocabulary.contains(token)) vocabulary[token] = vocabulary.size();
  }
  Json whole = golden()["tokenizers"]["gpt2"]["tokenizer"];
  whole["added_tokens"] = Json::array();
  whole["model"]["vocab"] = vocabulary;
  whole["model"]["merges"] = pairs;
  return parse_tokenizer_json(whole.dump(), "made");
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_tokens_of_a_long_word_do_not_depend_on_its_parts) {
  const std::string training = golden()["training_text"].string();
  std::string letters, mixed;
  for (const char c : training) {
    if (std::isalpha(static_cast<unsigned char>(c))) letters += c;
  }
  for (const Json& line : golden()["texts"]) mixed += line.string();
  std::erase(mixed, '<');  // without the character <, no special token is left
  for (const auto& [name, kind] : golden()["tokenizers"].members()) {
    const Tokenizer tokenizer = tokenizer_of(kind);
    for (const std::string& text :
         {letters, std::string(3000, 'a'), std::string(3000, ' '), std::string(3000, '0'), mixed,
          std::string(3000, '\n') + letters + std::string(500, '!')}) {
      const Encoded whole = encoded(tokenizer, text, whole_words);
      BOOST_TEST((whole.ids == whole.ids_alone));
      for (const std::size_t piece : {31u, 64u, 500u}) {
        BOOST_TEST_CONTEXT(name << ", pieces of " << piece << ": " << text.substr(0, 20)) {
          BOOST_TEST((encoded(tokenizer, text, piece) == whole));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_ids_of_long_words_are_right_for_any_kind_of_merges) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Rng rng(1, Purpose::test, seed);
    const int count = 1 + static_cast<int>(rng.below(5));
    std::vector<std::pair<int, int>> merges;
    for (std::uint32_t i = 0; i < 1 + rng.below(40); ++i) {
      const auto known = static_cast<std::uint32_t>(count) + i;
      merges.emplace_back(static_cast<int>(rng.below(known)), static_cast<int>(rng.below(known)));
    }
    std::string word;
    // A word of random letters. One of these letters has no token in the vocabulary, so it is
    // dropped.
    while (word.size() < 1500) {
      const std::string part(
          1 + rng.below(seed % 3 == 0 ? 40 : 3),
          static_cast<char>('a' + rng.below(static_cast<std::uint32_t>(count) + 1)));
      word += part;
    }
    const Tokenizer tokenizer = tokenizer_of_merges(count, merges);
    BOOST_TEST_CONTEXT("seed " << seed) {
      BOOST_TEST((encoded(tokenizer, word, 31) == encoded(tokenizer, word, whole_words)));
    }
  }
  // Each pair of neighbouring letters is merged before the pair to its left. So a token can depend
  // on the letter 25 places later.
  std::vector<std::pair<int, int>> chain;
  for (int letter = 24; letter >= 0; --letter) chain.emplace_back(letter, letter + 1);
  const Tokenizer tokenizer = tokenizer_of_merges(26, chain);
  std::string word;
  for (int i = 0; i < 200; ++i) {
    for (int letter = 0; letter < 26 - i % 3; ++letter) word += static_cast<char>('a' + letter);
  }
  BOOST_TEST((encoded(tokenizer, word, 31) == encoded(tokenizer, word, whole_words)));
}

BOOST_AUTO_TEST_CASE(repeated_characters_take_at_most_linear_time) {
  const Tokenizer tokenizer = tokenizer_of(golden()["tokenizers"]["gpt2"]);
  const Tokenizer gemma = tokenizer_of(golden()["tokenizers"]["gemma"]);
  for (const std::string unit : {"a", " ", "\n", "0", "e\u0301", "'", "\u0301", "<"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    for (const Tokenizer* const which : {&tokenizer, &gemma}) {
      const auto start = std::chrono::steady_clock::now();
      BOOST_TEST(Encoder(*which).encode(text).size() > 0u);
      // An algorithm with quadratic time would need an hour.
      BOOST_TEST(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
                 30);
    }
  }
}

BOOST_AUTO_TEST_CASE(broken_text_and_unknown_ids_are_refused) {
  const Tokenizer tokenizer = tokenizer_of(golden()["tokenizers"]["gpt2"]);
  BOOST_TEST(refusal([&] { Encoder(tokenizer).encode("ab\xff"); }) == "broken UTF-8 at byte 2");
  const std::vector<TokenId> wrong{0, 100000};
  BOOST_CHECK_THROW((void)tokenizer.decode(wrong), Error);
}

BOOST_AUTO_TEST_CASE(training_reproduces_the_tokenizer_checked_against_hugging_face) {
  const Json& kind = golden()["tokenizers"]["trained"];
  const std::string& text = golden()["training_text"].string();
  const BpeTraining training{
      .size = 500, .pattern = WordPattern::llama3, .special = {"<|end|>", "<|start|>"}};
  const TrainedBpe trained = train_bpe(text, training);
  BOOST_TEST(tokenizer_json(trained).dump() == kind["tokenizer"].dump());
}

BOOST_AUTO_TEST_SUITE_END()
