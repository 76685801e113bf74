#include "nn/text/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "nn/text/added_tokens.h"
#include "nn/text/byte_map.h"
#include "nn/text/hash.h"

namespace longhand::nn {
namespace {

/// A distinct word of the text, as a sequence of tokens, and the number of its occurrences. Each
/// merge replaces pairs of these tokens by one token.
struct Word {
  std::vector<TokenId> symbols;
  std::uint64_t count;
};

const char* end_of_word(WordPattern pattern, const char* p, const char* end) {
  switch (pattern) {
    case WordPattern::gpt2:
      return Gpt2Scanner::word_end(p, end);
    case WordPattern::llama3:
      return Llama3Scanner<3>::word_end(p, end);
    case WordPattern::qwen2:
      return Llama3Scanner<1>::word_end(p, end);
    case WordPattern::digits_gpt2:
      return DigitsGpt2Scanner::word_end(p, end);
    case WordPattern::spaces:
      break;
  }
  fail("training: expected the pattern gpt2, llama3, qwen2 or digits-gpt2, got ", name_of(pattern));
}

/// The distinct words of the text, in the order of their first occurrence. Special tokens separate
/// words and are not counted.
std::vector<Word> count_words(std::string_view text, const BpeTraining& training,
                              TokenId first_byte) {
  std::vector<AddedToken> special;
  for (std::size_t i = 0; i < training.special.size(); ++i) {
    special.push_back({static_cast<TokenId>(i), training.special[i], true});
  }
  const AddedTokenFinder finder(special);
  std::vector<Word> words;
  struct Hash {
    std::size_t operator()(std::string_view word) const { return hash_of(word); }
  };
  std::unordered_map<std::string_view, std::size_t, Hash> places;
  const auto count = [&](std::string_view part) {
    const char* const end = part.data() + part.size();
    for (const char* p = part.data(); p != end;) {
      const char* const word_end = end_of_word(training.pattern, p, end);
      const std::string_view word(p, static_cast<std::size_t>(word_end - p));
      const auto [known, is_new] = places.try_emplace(word, words.size());
      if (is_new) {
        Word& added = words.emplace_back();
        for (const char byte : word) {
          added.symbols.push_back(first_byte + static_cast<unsigned char>(byte));
        }
      }
      ++words[known->second].count;
      p = word_end;
    }
  };
  std::size_t done = 0;
  while (const auto match = finder.find(text, done)) {
    count(text.substr(done, match->begin - done));
    done = match->end;
  }
  count(text.substr(done));
  return words;
}

/// The count of each pair of neighbouring tokens, and the words in which the pair occurs.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word>& words) : words_(words) {
    for (std::size_t i = 0; i < words.size(); ++i) add(i);
    for (const auto& [pair, counted] : pairs_) push(pair, counted.count);
  }

  struct Best {
    TokenId left, right;
    std::uint64_t count;
  };
  /// The most frequent pair. Its count is 0 if no pair is left.
  Best best() {
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      const std::uint64_t now = pairs_.at(entry.pair).count;
      if (now == entry.count) {
        return {static_cast<TokenId>(entry.pair >> 32), static_cast<TokenId>(entry.pair), now};
      }
      // This entry is outdated: its pair has become less frequent. merge() pushes new entries only
      // for pairs that have become more frequent.
      queue_.pop();
      if (now > 0) push(entry.pair, now);
    }
    return {};
  }

  void merge(TokenId left, TokenId right, TokenId whole) {
    const std::vector<std::size_t> places =
        std::move(pairs_.at(std::uint64_t{left} << 32 | right).words);
    whole_ = whole;
    raised_.clear();
    for (const std::size_t place : places) {
      std::vector<TokenId>& symbols = words_[place].symbols;
      if (!holds(symbols, left, right)) continue;
      remove(place);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool here = symbols[i] == left && i + 1 < symbols.size() && symbols[i + 1] == right;
        symbols[kept++] = here ? whole : symbols[i];
        i += here;
      }
      symbols.resize(kept);
      add(place);
    }
    std::ranges::sort(raised_);
    raised_.erase(std::unique(raised_.begin(), raised_.end()), raised_.end());
    for (const std::uint64_t pair : raised_) push(pair, pairs_.at(pair).count);
  }

 private:
  struct Counted {
    std::uint64_t count = 0;
    // Indices of words. All words that contain the pair are in the list. Words in which a merge has
    // removed the pair may also be in it.
    std::vector<std::size_t> words;
  };
  struct Entry {
    std::uint64_t count, pair;
    bool operator<(const Entry& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static bool holds(const std::vector<TokenId>& symbols, TokenId left, TokenId right) {
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      if (symbols[i - 1] == left && symbols[i] == right) return true;
    }
    return false;
  }

  void push(std::uint64_t pair, std::uint64_t count) { queue_.push({count, pair}); }

  void remove(std::size_t place) {
    const Word& word = words_[place];
    for (std::size_t i = 1; i < word.symbols.size(); ++i) {
      pairs_.at(pair_at(word, i)).count -= word.count;
    }
  }

  void add(std::size_t place) {
    const Word& word = words_[place];
    for (std::size_t i = 1; i < word.symbols.size(); ++i) {
      const std::uint64_t pair = pair_at(word, i);
      if (word.symbols[i - 1] == whole_ || word.symbols[i] == whole_) raised_.push_back(pair);
      Counted& counted = pairs_[pair];
      counted.count += word.count;
      if (counted.words.empty() || counted.words.back() != place) counted.words.push_back(place);
    }
  }

  static std::uint64_t pair_at(const Word& word, std::size_t i) {
    return std::uint64_t{word.symbols[i - 1]} << 32 | word.symbols[i];
  }

  struct Hash {
    std::size_t operator()(std::uint64_t pair) const { return hash_of(pair, pair >> 32); }
  };
  std::vector<Word>& words_;
  std::unordered_map<std::uint64_t, Counted, Hash> pairs_;
  TokenId whole_ = 0xffffffff;  // the token that replaces the pair being merged
  // Pairs that contain the token whole_. In the current merge, only their counts can grow.
  std::vector<std::uint64_t> raised_;
  std::priority_queue<Entry> queue_;
};

Json pre_tokenizer(WordPattern pattern) {
  const auto byte_level = [](bool own_pattern) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", own_pattern}};
  };
  if (pattern == WordPattern::gpt2) return byte_level(true);
  Json steps = Json::array();
  if (pattern == WordPattern::digits_gpt2) {
    steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    steps.push_back(byte_level(true));
  } else {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", regular_expression(pattern)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
    steps.push_back(byte_level(false));
  }
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

}  // namespace

TrainedBpe train_bpe(std::string_view text, const BpeTraining& training) {
  const std::size_t broken = find_broken_utf8(text);
  LONGHAND_CHECK(broken == std::string_view::npos, "broken UTF-8 at byte ", broken);
  TrainedBpe trained{.pattern = training.pattern,
                     .special = training.special.size(),
                     .tokens = training.special,
                     .merges = {},
                     .distinct_words = 0};
  LONGHAND_CHECK(training.size >= trained.special + 256, "expected at least ",
                 trained.special + 256, " tokens for the special tokens and the 256 bytes, got ",
                 training.size);
  for (const std::string& special : training.special) {
    LONGHAND_CHECK(!special.empty() && find_broken_utf8(special) == std::string::npos &&
                       std::ranges::count(training.special, special) == 1,
                   "special token ", quote(special),
                   ": expected non-empty UTF-8 text that differs from all other special tokens");
  }
  const auto first_byte = static_cast<TokenId>(trained.special);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string token(1, static_cast<char>(byte));
    for (const std::string& special : training.special) {
      LONGHAND_CHECK(special != token, "special token ", quote(special),
                     ": expected more than one byte");
    }
    trained.tokens.push_back(token);
  }
  std::vector<Word> words = count_words(text, training, first_byte);
  trained.distinct_words = words.size();
  PairCounts pairs(words);
  std::unordered_map<std::string, TokenId> ids;
  for (std::size_t id = first_byte; id < trained.tokens.size(); ++id) {
    ids.emplace(trained.tokens[id], static_cast<TokenId>(id));
  }
  while (trained.tokens.size() < training.size) {
    const auto [left, right, count] = pairs.best();
    if (count < std::max<std::uint64_t>(training.least_count, 1)) break;
    // Two different pairs may produce the same bytes. Both merges then have the same token as
    // result.
    const std::string whole = trained.tokens[left] + trained.tokens[right];
    const auto [known, is_new] =
        ids.try_emplace(whole, static_cast<TokenId>(trained.tokens.size()));
    if (is_new) trained.tokens.push_back(whole);
    trained.merges.emplace_back(left, right);
    pairs.merge(left, right, known->second);
  }
  return trained;
}

Json tokenizer_json(const TrainedBpe& trained) {
  const auto text_of = [&](TokenId id) {
    return id < trained.special ? trained.tokens[id] : byte_map.text(trained.tokens[id]);
  };
  Json added = Json::array(), merges = Json::array();
  Json::Object vocabulary;
  for (TokenId id = 0; id < trained.tokens.size(); ++id) {
    vocabulary.emplace_back(text_of(id), id);
    if (id >= trained.special) continue;
    added.push_back({{"id", id},
                     {"content", trained.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  for (const auto& [left, right] : trained.merges) {
    merges.push_back(Json::Array{text_of(left), text_of(right)});
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer(trained.pattern)},
          {"post_processor", nullptr},
          {"decoder",
           {{"type", "ByteLevel"},
            {"add_prefix_space", true},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", Json(std::move(vocabulary))},
            {"merges", merges}}}};
}

}  // namespace longhand::nn
