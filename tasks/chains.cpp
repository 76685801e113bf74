#include "tasks/chains.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

WordVocabulary make_vocabulary(std::int64_t blocks, std::int64_t size) {
  std::vector<std::string> texts;
  for (std::int64_t value = 0; value < size; ++value) texts.push_back(text('v', value));
  for (std::int64_t p = 0; p < (blocks - 1) * size; ++p) texts.push_back(std::to_string(p));
  return WordVocabulary(std::move(texts), " ");
}

/// Splits a text into words at spaces.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool is_number_below(std::string_view digits, std::int64_t bound, std::int64_t& number) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stop == end && number >= 0 && number < bound &&
         (digits.size() == 1 || digits[0] != '0');
}

class Chains final : public Task {
 public:
  explicit Chains(const OptionValues& options)
      : blocks_(options.integer("blocks", 1, 1024)),
        size_(options.integer("size", 1, 1024)),
        by_depth_(options.choice("score", {"all", "depths"}) == 1),
        vocabulary_(make_vocabulary(blocks_, size_)) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  Outputs outputs() const override { return {blocks_, size_, false}; }
  std::int64_t longest() const override { return blocks_ * size_; }
  std::string_view main_metric() const override { return "choices"; }

  Sample sample(Rng& rng, int) const override {
    Sample sample;
    std::vector<std::int64_t> order(static_cast<std::size_t>(size_));
    for (std::int64_t i = 0; i < size_; ++i) {
      sample.tokens.push_back(
          static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(size_))));
    }
    for (std::int64_t block = 1; block < blocks_; ++block) {
      // Each block after the first contains one reference to each position of the previous block.
      // The tokens 0 to size_ - 1 are values, and token size_ + p is a reference to position p.
      std::iota(order.begin(), order.end(), block * size_);
      rng.shuffle(order.begin(), order.end());
      sample.tokens.insert(sample.tokens.end(), order.begin(), order.end());
    }
    sample.targets.assign(static_cast<std::size_t>(longest() * blocks_), Sample::not_counted);
    for (std::int64_t i = 0; i < longest(); ++i) {
      std::int64_t at = i;
      for (std::int64_t group = i / size_; group >= 0; --group) {
        const std::int64_t token = sample.tokens[static_cast<std::size_t>(at)];
        sample.targets[static_cast<std::size_t>(i * blocks_ + group)] =
            static_cast<std::int32_t>(token % size_);
        at = token - size_;
      }
    }
    for (std::size_t o = 0; o < sample.targets.size(); ++o) {
      if (sample.targets[o] >= 0) sample.asked.push_back(static_cast<std::int32_t>(o));
    }
    return sample;
  }

  /// `choices`: accuracy of all predictions. `depth d`: accuracy of those predictions for which the
  /// model must follow d references.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    const std::int64_t right = count_right(sample, said);
    tally.add_share("choices", right, static_cast<std::int64_t>(said.size()));
    if (!by_depth_) return;
    std::vector<std::int64_t> hits(static_cast<std::size_t>(blocks_)), trials = hits;
    for (std::size_t i = 0; i < said.size(); ++i) {
      const std::int32_t output = sample.asked[i];
      const auto depth = static_cast<std::size_t>(output / blocks_ / size_ - output % blocks_);
      ++trials[depth];
      hits[depth] += said[i] == sample.targets[static_cast<std::size_t>(output)];
    }
    for (std::size_t d = 0; d < trials.size(); ++d) {
      tally.add_share(text("depth ", d), hits[d], trials[d]);
    }
  }

  /// A model must attend from each token to the single token to which it refers. The prediction
  /// depends on the whole chain of references, but layers such as ChaCAL can follow the chain from
  /// one reference to the next.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    std::vector<ReferenceRow> rows;
    for (std::int64_t i = size_; i < static_cast<std::int64_t>(sample.tokens.size()); ++i) {
      const std::int64_t token = sample.tokens[static_cast<std::size_t>(i)];
      rows.push_back({static_cast<std::int32_t>(i), {static_cast<std::int32_t>(token - size_)}});
    }
    return rows;
  }

  /// The answer contains the chain of every token: the token itself, the token to which it refers,
  /// and so on until a value. Chains are separated by "; ".
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    std::string chains;
    for (std::int64_t i = 0; i < longest(); ++i) {
      for (std::int64_t group = i / size_; group >= 0; --group) {
        const std::int64_t target = sample.targets[static_cast<std::size_t>(i * blocks_ + group)];
        chains += group == 0 ? text('v', target) : text((group - 1) * size_ + target, ' ');
      }
      chains += i + 1 < longest() ? "; " : "";
    }
    return {vocabulary_.decode(sample.tokens), chains};
  }

  std::string answer(std::string_view prompt, int) const override {
    std::vector<std::string_view> words;
    const std::string wrong = read(prompt, words);
    LONGHAND_CHECK(wrong.empty(), "chains: ", wrong);
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i) {
      all += (i == 0 ? "" : "; ") + chain_from(words, words[i]);
    }
    return all;
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::vector<std::string_view> words;
    std::string wrong = read(prompt, words);
    if (!wrong.empty()) return wrong;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string expected = chain_from(words, words[i]);
      const std::size_t end = std::min(answer.find(';'), answer.size());
      std::string got;
      for (const std::string_view word : words_of(answer.substr(0, end))) {
        got += (got.empty() ? "" : " ") + std::string(word);
      }
      if (got != expected) {
        return text("token ", i, ": expected ", quote(expected), ", got ", quote(got));
      }
      if (end == answer.size() && i + 1 < words.size()) {
        return text("expected the chains of ", words.size(), " tokens, got ", i + 1);
      }
      answer.remove_prefix(std::min(end + 1, answer.size()));
    }
    if (!answer.empty()) return text("expected nothing after the last chain, got ", quote(answer));
    return std::nullopt;
  }

 private:
  /// Splits a prompt into words and checks that it is a prompt of this task. Returns a description
  /// of what is wrong, or an empty text if nothing is wrong.
  std::string read(std::string_view prompt, std::vector<std::string_view>& words) const {
    words = words_of(prompt);
    if (static_cast<std::int64_t>(words.size()) != longest()) {
      return text("expected a prompt of ", longest(), " tokens, got ", words.size());
    }
    for (std::int64_t block = 0; block < blocks_; ++block) {
      std::set<std::string_view> seen;
      for (std::int64_t i = block * size_; i < (block + 1) * size_; ++i) {
        const std::string_view word = words[static_cast<std::size_t>(i)];
        std::int64_t number = 0;
        if (block == 0) {
          if (word[0] != 'v' || !is_number_below(word.substr(1), size_, number)) {
            return text("token ", i, ": expected a value from v0 to v", size_ - 1, ", got ",
                        quote(word));
          }
          continue;
        }
        if (!is_number_below(word, block * size_, number) || number < (block - 1) * size_) {
          return text("token ", i, ": expected a position from ", (block - 1) * size_, " to ",
                      block * size_ - 1, ", got ", quote(word));
        }
        if (!seen.insert(word).second) {
          return text("token ", i, ": expected different positions in a block, got position ", word,
                      " twice");
        }
      }
    }
    return {};
  }

  static std::string chain_from(const std::vector<std::string_view>& words, std::string_view word) {
    std::string chain(word);
    while (word[0] != 'v') {
      std::size_t place = 0;
      std::from_chars(word.data(), word.data() + word.size(), place);
      word = words[place];
      chain += ' ' + std::string(word);
    }
    return chain;
  }

  std::int64_t blocks_, size_;
  bool by_depth_;
  WordVocabulary vocabulary_;
};

}  // namespace

TaskKind chains() {
  return {
      .name = "chains",
      .summary = "follow chains of references through blocks of tokens to a value",
      .options = {{"blocks", "16",
                   "number of blocks per sample; the longest chain has X - 1 references"},
                  {"size", "8", "number of tokens per block; also the number of different values"},
                  {"score", "all",
                   "scores: all or depths; depths: also one score for each number of references"}},
      .distributions = {{"train", [](OptionValues&) {}}},
      .make_with = [](const OptionValues& values) { return std::make_unique<Chains>(values); }};
}

}  // namespace longhand::tasks
