#include "nn/text/bpe_trainer.h"

#include <map>
#include "tests/check.h"

#include "core/error.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"

BOOST_AUTO_TEST_SUITE(bpe_trainer_test)

using namespace longhand;
using namespace longhand::nn;

BOOST_AUTO_TEST_CASE(the_most_frequent_pair_is_merged_first_and_ties_go_to_the_lowest_ids) {
  // "ab" occurs 3 times; "cd" and "bc" occur less often; "xy" and "vw" are equally frequent.
  const TrainedBpe trained = train_bpe("ab ab abc cd xy xy vw vw", {.size = 300});
  BOOST_REQUIRE(trained.merges.size() > 3u);
  const auto bytes = [&](std::size_t merge) {
    const auto [left, right] = trained.merges[merge];
    return trained.tokens[left] + "+" + trained.tokens[right];
  };
  BOOST_TEST(bytes(0) == "a+b");
  BOOST_TEST(bytes(1) == " +v");
  BOOST_TEST(bytes(2) == " +x");
  BOOST_TEST(bytes(3) == " +ab");
}

/// Trains byte pair encoding by its definition: counts all pairs again before each merge.
TrainedBpe by_definition(std::vector<std::pair<std::vector<TokenId>, std::uint64_t>> words,
                         std::size_t size) {
  TrainedBpe trained{WordPattern::gpt2, 0, {}, {}, words.size()};
  std::map<std::string, TokenId> ids;
  for (int byte = 0; byte < 256; ++byte) {
    trained.tokens.emplace_back(1, static_cast<char>(byte));
    ids[trained.tokens.back()] = static_cast<TokenId>(byte);
  }
  while (trained.tokens.size() < size) {
    std::map<std::pair<TokenId, TokenId>, std::uint64_t> counts;
    for (const auto& [symbols, count] : words) {
      for (std::size_t i = 1; i < symbols.size(); ++i)
        counts[{symbols[i - 1], symbols[i]}] += count;
    }
    std::pair<TokenId, TokenId> best;
    std::uint64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) {
        most = count;
        best = pair;
      }
    }
    if (most < 2) break;
    const std::string whole = trained.tokens[best.first] + trained.tokens[best.second];
    if (!ids.contains(whole)) {
      ids[whole] = static_cast<TokenId>(trained.tokens.size());
      trained.tokens.push_back(whole);
    }
    trained.merges.push_back(best);
    for (auto& [symbols, count] : words) {
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != best.first || symbols[i + 1] != best.second) continue;
        symbols[i] = ids[whole];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return trained;
}

BOOST_AUTO_TEST_CASE(every_merge_is_the_most_frequent_pair_of_a_fresh_count) {
  // All words consist of the letters a and b. So letters repeat and pairs overlap, as in aaa, and
  // the same bytes can be written as different pairs of tokens, as ab + a and a + ba.
  std::string text;
  std::map<std::string, std::uint64_t> counts;
  std::vector<std::string> order;
  std::uint64_t state = 1;
  for (int i = 0; i < 400; ++i) {
    std::string word;
    state = state * 6364136223846793005u + 1442695040888963407u;
    for (std::uint64_t bits = state >> 40, n = 1 + (bits & 7); n > 0; --n, bits >>= 2) {
      word += static_cast<char>('a' + (bits & 1));
    }
    if (counts[word]++ == 0) order.push_back(word);
    text += word + "\n";
  }
  std::vector<std::pair<std::vector<TokenId>, std::uint64_t>> words;
  for (const std::string& word : order) {
    words.push_back({{word.begin(), word.end()}, counts[word]});
  }
  words.push_back({{'\n'}, 400});
  const TrainedBpe trained = train_bpe(text, {.size = 330}), expected = by_definition(words, 330);
  BOOST_TEST(trained.distinct_words == expected.distinct_words);
  BOOST_TEST((trained.merges == expected.merges));
  BOOST_TEST(trained.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_TEST(trained.merges.size() >= 50u);
}

BOOST_AUTO_TEST_CASE(special_tokens_split_the_text_and_are_never_merged) {
  const TrainedBpe trained =
      train_bpe("<s>aaaa<s>aaaa<s>", {.size = 270, .special = {"<s>"}, .least_count = 1});
  for (std::size_t id = 1; id < trained.tokens.size(); ++id) {
    BOOST_TEST(trained.tokens[id].find("<s") == std::string::npos);
  }
  const Tokenizer tokenizer = parse_tokenizer_json(tokenizer_json(trained).dump(), "trained");
  BOOST_TEST((Encoder(tokenizer).encode("<s>aaaa") == std::vector<TokenId>{0, 258}));
}

BOOST_AUTO_TEST_CASE(invalid_training_settings_are_refused) {
  BOOST_CHECK_THROW((void)train_bpe("a", {.size = 255}), Error);
  BOOST_CHECK_THROW((void)train_bpe("\xff", {.size = 300}), Error);
  BOOST_CHECK_THROW((void)train_bpe("a", {.size = 300, .special = {"x"}}), Error);
  for (const std::vector<std::string>& special :
       {std::vector<std::string>{""}, {"\xff\xfe"}, {"<s>", "<s>"}}) {
    BOOST_CHECK_THROW((void)train_bpe("a", {.size = 300, .special = special}), Error);
  }
  BOOST_CHECK_THROW((void)train_bpe("a", {.size = 300, .pattern = WordPattern::spaces}), Error);
  BOOST_TEST(train_bpe("", {.size = 300}).merges.empty());
}

BOOST_AUTO_TEST_SUITE_END()
