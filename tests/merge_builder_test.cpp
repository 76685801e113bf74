#include "nn/text/merge_builder.h"

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "tests/check.h"

#include "core/rng.h"
#include "nn/text/encoder.h"
#include "nn/text/merger.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(merge_builder_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

constexpr std::array<std::string_view, 8> characters{"a", "b",      ",",      " ",
                                                     ">", "\u00e9", "\u4e2d", "\U0001f600"};
// The first six of `characters` have their own tokens in the vocabulary. The other two are encoded
// as byte tokens.
constexpr std::size_t known = 6;

/// A tokenizer with random merges. Its vocabulary contains all bytes, the known characters, and the
/// results of the merges. If `of_bytes` is true, some merges join the tokens of single bytes.
TokenizerParts random_parts(Rng& rng, std::uint32_t merges, bool of_bytes) {
  std::vector<std::string> names;
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    names.emplace_back(name);
  }
  names.insert(names.end(), characters.begin(), characters.begin() + known);
  std::vector<std::array<std::string, 2>> pairs;
  std::set<std::string> made(names.begin(), names.end());
  for (std::uint32_t i = 0; i < merges; ++i) {
    const auto any = [&] {
      if (of_bytes && rng.below(4) == 0) return names[0x80 + rng.below(0x40)];
      return names[256 + rng.below(static_cast<std::uint32_t>(names.size()) - 256)];
    };
    const std::string left = any(), right = any();
    if (!made.insert(left + right).second) continue;
    names.push_back(left + right);
    pairs.push_back({left, right});
  }
  TokenizerParts parts;
  parts.pattern = WordPattern::spaces;
  parts.tokens = TokenTable(names.size());
  for (TokenId id = 0; id < names.size(); ++id) {
    parts.tokens.add(id, names[id], TokenTable::Found::yes);
  }
  MergeBuilder builder(parts.tokens);
  for (const auto& [left, right] : pairs) builder.add(left, right);
  parts.merges = builder.table();
  parts.joined = builder.joined();
  return parts;
}

/// Encodes a text, given as indices into `characters`, without splitting it into pieces first.
std::vector<TokenId> uncut(const Tokenizer& tokenizer, const std::vector<std::size_t>& text) {
  std::vector<Symbol> symbols;
  for (const std::size_t i : text) {
    if (i < known) {
      symbols.push_back({static_cast<TokenId>(256 + i), 0});
      continue;
    }
    for (const char byte : characters[i]) {
      symbols.push_back({tokenizer.byte_token(static_cast<unsigned char>(byte)), 0});
    }
  }
  const MergeTable& merges = tokenizer.parts().merges;
  std::vector<MergeTable::Merge> next(symbols.size(), MergeTable::none);
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    next[i] = merges.find(symbols[i].id, symbols[i + 1].id);
  }
  Merger().merge(merges, symbols, next);
  std::vector<TokenId> ids;
  for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
  return ids;
}

TokenTable table_of(const std::vector<std::string>& names) {
  TokenTable tokens(names.size());
  for (TokenId id = 0; id < names.size(); ++id) tokens.add(id, names[id], TokenTable::Found::yes);
  return tokens;
}

}  // namespace

BOOST_AUTO_TEST_CASE(splitting_a_text_where_no_merge_crosses_changes_no_id) {
  std::size_t cuts = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    Rng rng(1, Purpose::test, seed);
    const bool of_bytes = seed % 4 == 0;
    const Tokenizer tokenizer(random_parts(rng, rng.below(30), of_bytes));
    std::string text;
    std::vector<std::size_t> places;
    for (std::uint32_t i = rng.below(200); i > 0; --i) {
      places.push_back(rng.below(characters.size()));
      text += characters[places.back()];
    }
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (!tokenizer.parts().joined(text[i - 1], text[i])) ++cuts;
    }
    BOOST_TEST_CONTEXT("seed " << seed << ": " << text) {
      BOOST_TEST(Encoder(tokenizer).encode(text) == uncut(tokenizer, places),
                 boost::test_tools::per_element());
    }
  }
  BOOST_TEST(cuts > 1000u);
}

BOOST_AUTO_TEST_CASE(bytes_are_joined_if_a_merge_or_a_character_joins_them) {
  const TokenTable tokens = table_of({"ab", ",", "ab,", "c", "cab", "<0x80>", "<0x80>c"});
  MergeBuilder builder(tokens);
  builder.add("ab", ",");
  builder.add("c", "ab");
  BOOST_TEST(builder.table().find(0, 1).whole == 2u);
  const JoinedBytes& joined = builder.joined();
  BOOST_TEST(joined('b', ','));
  BOOST_TEST(joined('c', 'a'));
  BOOST_TEST(!joined('a', 'b'));  // the token "ab" exists, but no merge joins "a" and "b"
  BOOST_TEST(!joined(',', 'b'));
  BOOST_TEST(joined('\xc3', '\xa9'));
  BOOST_TEST(joined('a', '\x80'));
  BOOST_TEST(!joined('\xa9', '\xc3'));
  builder.add("<0x80>", "c");
  BOOST_TEST(builder.table().find(5, 3).whole == 6u);
  BOOST_TEST(joined(',', 'b'));
}

BOOST_AUTO_TEST_CASE(the_rank_of_a_merge_is_its_place_in_the_list) {
  const TokenTable tokens = table_of({"a", "b", "c", "ab", "bc", "abc", "aa"});
  MergeBuilder builder(tokens);
  const std::vector<std::array<std::string, 2>> pairs{
      {"ab", "c"}, {"a", "b"}, {"b", "c"}, {"a", "bc"}, {"a", "a"}};
  for (const auto& [left, right] : pairs) builder.add(left, right);
  const MergeTable merges = builder.table();
  for (std::uint32_t rank = 0; rank < pairs.size(); ++rank) {
    const auto& [left, right] = pairs[rank];
    const auto merge = merges.find(tokens.find(left).value(), tokens.find(right).value());
    BOOST_TEST(merge.rank == rank);
    BOOST_TEST(merge.whole == tokens.find(left + right).value());
  }
}

BOOST_AUTO_TEST_CASE(a_merge_of_unknown_tokens_is_named) {
  const TokenTable tokens = table_of({"a", "b", "ab"});
  const auto says = [&](std::string_view left, std::string_view right) {
    return refusal([&] {
      MergeBuilder builder(tokens);
      builder.add("a", "b");
      builder.add(left, right);
      (void)builder.table();
    });
  };
  BOOST_TEST(says("a", "b") == "accepted");
  BOOST_TEST(says("a", "c") == "merge 1: \"c\" is not a token");
  BOOST_TEST(says("b", "a") == "merge 1: the text of \"b\" followed by \"a\" is not a token");
}

BOOST_AUTO_TEST_SUITE_END()
