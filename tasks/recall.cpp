#include "tasks/recall.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/range.h"

namespace longhand::tasks {
namespace {

constexpr std::int64_t most_tokens = 1 << 20, most_words = 1 << 20;
constexpr double slot_exponent = 0.99;

class Recall final : public Task {
 public:
  using Tokens = std::vector<std::int32_t>;

  explicit Recall(const OptionValues& options)
      : tokens_(Range::of(options, "tokens", 4, most_tokens)),
        repeats_(options.integer("repeats", 1, most_tokens)),
        back_(options.integer("back", 1, repeats_)),
        first_value_(options.integer("vocabulary", 4, most_words) / 2),
        vocabulary_(WordVocabulary::of_numbers(options.integer("vocabulary", 4, most_words))) {
    LONGHAND_CHECK(tokens_.least % 2 == 0 && tokens_.most % 2 == 0,
                   "task recall: option tokens: expected even numbers, got ",
                   quote(options.text("tokens")));
    // Minimum number of tokens per key: `repeats_` pairs of a key and a value in the table, and one
    // slot of two tokens after the table.
    const std::int64_t each = 2 * repeats_ + 2;
    LONGHAND_CHECK(tokens_.least >= each, "task recall: option tokens: expected at least ", each,
                   ", the number of tokens for a key with ", repeats_, " values, got ",
                   tokens_.least);
    pairs_ = options.integer("pairs", 1, most_tokens);
    LONGHAND_CHECK(pairs_ * each <= tokens_.most, "task recall: option pairs: expected at most ",
                   tokens_.most / each, ", because each key takes ", each, " of ", tokens_.most,
                   " tokens, got ", pairs_);
    const std::int64_t words = std::max(2 * (pairs_ + 1), 2 * pairs_ * repeats_ - 1);
    LONGHAND_CHECK(vocabulary_.size() >= words,
                   "task recall: option vocabulary: expected at least ", words, " for ", pairs_,
                   " keys and ", pairs_ * repeats_, " values, got ", vocabulary_.size());
    for (std::int64_t slot = 1; slot <= tokens_.most / 2 - repeats_; ++slot) {
      mean_waits_.push_back(std::pow(static_cast<double>(slot), slot_exponent));
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  Outputs outputs() const override { return {1, vocabulary_.size(), false}; }
  std::int64_t longest() const override { return tokens_.most; }
  std::string_view main_metric() const override { return "tokens"; }

  Sample sample(Rng& rng, int) const override {
    const std::int64_t length = 2 * Range{tokens_.least / 2, tokens_.most / 2}.draw(rng);
    const std::int64_t pairs = pairs_of(length);
    const Tokens keys = draw_distinct(rng, 1, first_value_ - 1, pairs);
    const Tokens values =
        draw_distinct(rng, first_value_, vocabulary_.size() - first_value_, pairs * repeats_);
    std::vector<std::size_t> order;  // index of the key of each value
    for (std::size_t key = 0; key < keys.size(); ++key) {
      order.insert(order.end(), static_cast<std::size_t>(repeats_), key);
    }
    if (repeats_ > 1) rng.shuffle(order.begin(), order.end());

    Sample sample;
    std::vector<Tokens> given(keys.size());  // values of each key, in the order of the table
    for (std::size_t i = 0; i < order.size(); ++i) {
      sample.tokens.push_back(keys[order[i]]);
      sample.tokens.push_back(values[i]);
      given[order[i]].push_back(values[i]);
    }
    const std::int64_t table = std::ssize(sample.tokens);
    for (std::int64_t i = table; i < length; ++i) {
      const std::uint32_t any = rng.below(static_cast<std::uint32_t>(vocabulary_.size()));
      sample.tokens.push_back(static_cast<std::int32_t>(any));
    }
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    const std::vector<std::int64_t> slots = draw_slots(rng, (length - table) / 2, pairs);
    for (std::size_t key = 0; key < keys.size(); ++key) {
      const auto place = static_cast<std::size_t>(table + 2 * slots[key]);
      sample.tokens[place] = keys[key];
      sample.targets[place] = given[key][static_cast<std::size_t>(repeats_ - back_)];
      sample.asked.push_back(static_cast<std::int32_t>(place));
    }
    std::ranges::sort(sample.asked);
    return sample;
  }

  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
  }

  /// To predict a value, a model must attend to the first occurrence of the value, which is in the
  /// table.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    std::unordered_map<std::int32_t, std::int32_t> first;
    for (std::size_t i = 1; i < sample.tokens.size(); i += 2) {
      first.emplace(sample.tokens[i], static_cast<std::int32_t>(i));
    }
    std::vector<ReferenceRow> rows;
    for (const std::int32_t output : sample.asked) {
      rows.push_back({output, {first.at(sample.targets[static_cast<std::size_t>(output)])}});
    }
    return rows;
  }

  /// The table of a prompt is followed by slots, which are pairs of tokens. The answer has an entry
  /// for every slot whose first token is a key of the table. The entry contains the index of this
  /// token in the prompt, counted from 0, and the value of the key. Some slots consist of random
  /// tokens, so their first token may be a key by chance. The answer has entries for these slots
  /// too, because the text does not show which slots are random.
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    std::unordered_map<std::int32_t, std::int32_t> value_of;
    for (const std::int32_t output : sample.asked) {
      const auto place = static_cast<std::size_t>(output);
      value_of[sample.tokens[place]] = sample.targets[place];
    }
    std::string answer;
    for (std::size_t place = 2 * sample.asked.size() * static_cast<std::size_t>(repeats_);
         place < sample.tokens.size(); place += 2) {
      const auto found = value_of.find(sample.tokens[place]);
      if (found != value_of.end()) answer += entry(answer, place, found->second);
    }
    return {vocabulary_.decode(sample.tokens), answer};
  }

  std::string answer(std::string_view prompt, int) const override {
    Prompt read;
    const std::string wrong = read_prompt(prompt, read);
    LONGHAND_CHECK(wrong.empty(), "recall: ", wrong);
    std::string answer;
    for (const auto& [place, key] : read.slots) {
      answer += entry(answer, static_cast<std::size_t>(place), value(read, key));
    }
    return answer;
  }

  /// For each key, the answer must contain an entry INDEX:VALUE. INDEX is the place of the key
  /// after the table, and VALUE is the key's value. If a key occurs several times after the table,
  /// INDEX may be any of these places.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    Prompt read;
    std::string wrong = read_prompt(prompt, read);
    if (!wrong.empty()) return wrong;
    // The keys for which the answer has no entry so far, each with the index of one occurrence.
    std::map<std::int32_t, std::int64_t> unanswered;
    for (const auto& [place, key] : read.slots) unanswered.emplace(key, place);
    std::int64_t last = -1;
    while (!answer.empty()) {
      const std::size_t end = std::min(answer.find(' '), answer.size());
      const std::string_view word = answer.substr(0, end);
      answer.remove_prefix(std::min(end + 1, answer.size()));
      if (word.empty()) continue;
      std::int64_t place = 0, said = 0;
      const char* const stop = word.data() + word.size();
      const auto at = std::from_chars(word.data(), stop, place);
      const bool parted = at.ec == std::errc() && at.ptr != stop && *at.ptr == ':';
      const auto rest = std::from_chars(parted ? at.ptr + 1 : stop, stop, said);
      if (rest.ec != std::errc() || rest.ptr != stop) {
        return text("expected places and values such as 64:5000, got ", quote(word));
      }
      const auto slot = read.slots.find(place);
      if (slot == read.slots.end())
        return text("place ", place, ": the prompt asks for no value at this place");
      if (place <= last)
        return text("expected ascending places, got place ", place, " after place ", last);
      last = place;
      const std::int32_t right = value(read, slot->second);
      if (said != right) return text("place ", place, ": expected ", right, ", got ", said);
      unanswered.erase(slot->second);
    }
    if (unanswered.empty()) return std::nullopt;
    const auto& [key, place] = *unanswered.begin();
    return text("place ", place, ": expected the value of key ", key, ", got nothing");
  }

 private:
  /// Number of keys of a sample of `length` tokens, which is proportional to the length.
  std::int64_t pairs_of(std::int64_t length) const {
    return std::max<std::int64_t>(1, pairs_ * length / tokens_.most);
  }

  /// Draws `count` distinct numbers from the `range` integers that start at `least`.
  static Tokens draw_distinct(Rng& rng, std::int64_t least, std::int64_t range,
                              std::int64_t count) {
    Tokens all(static_cast<std::size_t>(range));
    std::iota(all.begin(), all.end(), static_cast<std::int32_t>(least));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::swap(all[i], all[i + rng.below(static_cast<std::uint32_t>(all.size() - i))]);
    }
    all.resize(static_cast<std::size_t>(count));
    return all;
  }

  /// Draws `count` slots (pairs of tokens after the table) for the keys. The result contains
  /// indices from 0. Each slot s = 1, 2, ... gets a random time, which is exponentially distributed
  /// with mean s^0.99, and the slots with the lowest times are chosen. This is equivalent to
  /// drawing slots without replacement with probabilities proportional to s^-0.99.
  std::vector<std::int64_t> draw_slots(Rng& rng, std::int64_t slots, std::int64_t count) const {
    std::vector<std::pair<double, std::int64_t>> waits;
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const double wait = -std::log1p(-rng.uniform()) * mean_waits_[static_cast<std::size_t>(slot)];
      waits.emplace_back(wait, slot);
    }
    std::ranges::partial_sort(waits, waits.begin() + count);
    std::vector<std::int64_t> first;
    for (std::int64_t i = 0; i < count; ++i) {
      first.push_back(waits[static_cast<std::size_t>(i)].second);
    }
    return first;
  }

  static std::string entry(const std::string& before, std::size_t place, std::int32_t value) {
    return text(before.empty() ? "" : " ", place, ':', value);
  }

  /// A parsed prompt. `values` contains the values of each key, in the order in which they are in
  /// the table.
  struct Prompt {
    std::map<std::int32_t, Tokens> values;
    // The tokens after the table form pairs. If the first token of a pair is a key, `slots`
    // contains the index of this token and the key.
    std::map<std::int64_t, std::int32_t> slots;
  };

  std::int32_t value(const Prompt& prompt, std::int32_t key) const {
    return *(prompt.values.at(key).end() - back_);
  }

  /// Parses a prompt. Returns a description of what is wrong, or an empty text if nothing is wrong.
  std::string read_prompt(std::string_view written, Prompt& prompt) const {
    Tokens tokens;
    std::string wrong = vocabulary_.encode(written, tokens);
    if (!wrong.empty()) return wrong;
    const std::int64_t length = std::ssize(tokens);
    if (length % 2 != 0 || length < tokens_.least || length > tokens_.most) {
      return text("expected a prompt with an even number of tokens from ", tokens_.least, " to ",
                  tokens_.most, ", got ", length);
    }
    const auto table = static_cast<std::size_t>(2 * pairs_of(length) * repeats_);
    std::map<std::int32_t, std::size_t> owners;  // for each value, its index in the prompt
    for (std::size_t i = 0; i < table; i += 2) {
      const std::int32_t key = tokens[i], value = tokens[i + 1];
      if (key < 1 || key >= first_value_) {
        return text("place ", i, ": expected a key from 1 to ", first_value_ - 1, ", got ", key);
      }
      if (value < first_value_) {
        return text("place ", i + 1, ": expected a value from ", first_value_, " to ",
                    vocabulary_.size() - 1, ", got ", value);
      }
      const auto [owner, is_new] = owners.emplace(value, i + 1);
      if (!is_new) {
        return text("place ", i + 1, ": expected different values, but value ", value,
                    " is also at place ", owner->second);
      }
      prompt.values[key].push_back(value);
    }
    std::map<std::int32_t, std::int64_t> asked;  // how often each key occurs after the table
    for (std::size_t i = table; i < tokens.size(); i += 2) {
      if (!prompt.values.contains(tokens[i])) continue;
      prompt.slots.emplace(static_cast<std::int64_t>(i), tokens[i]);
      ++asked[tokens[i]];
    }
    for (const auto& [key, values] : prompt.values) {
      if (std::ssize(values) != repeats_) {
        return text("key ", key, ": expected ", repeats_, " values, got ", values.size());
      }
      if (asked[key] == 0)
        return text("key ", key, ": expected a slot that begins with this key, but no slot does");
    }
    return {};
  }

  Range tokens_;
  std::int64_t repeats_, back_, pairs_ = 0;
  std::int64_t first_value_;
  WordVocabulary vocabulary_;
  std::vector<double> mean_waits_;  // means of the random numbers by which draw_slots() sorts slots
};

/// A test distribution: samples have `factor` times as many tokens and keys as the longest samples
/// in training.
Distribution longer_tables(std::int64_t factor) {
  return {text(factor, "x"), [factor](OptionValues& values) {
            const Range tokens = Range::of(values, "tokens", 4, most_tokens / factor);
            values.set("tokens", text(factor * tokens.most));
            values.set("pairs", text(factor * values.integer("pairs", 1, most_tokens / factor)));
          }};
}

}  // namespace

TaskKind recall() {
  return {
      .name = "recall",
      .summary = "look up the values of keys in a table (MQAR)",
      .options = {{"pairs", "32",
                   "number of keys in the longest samples; shorter samples have proportionally "
                   "fewer keys"},
                  {"tokens", "64-256",
                   "number of tokens per sample, which must be even, or a range such as 64-256"},
                  {"vocabulary", "8192",
                   "vocabulary size; keys are tokens of the first half, values are tokens of the "
                   "second half"},
                  {"repeats", "1", "number of values that the table assigns to each key"},
                  {"back", "1",
                   "which value of a key to predict; 1: the last, 2: the second last, and so on"}},
      .distributions = {{"train", [](OptionValues&) {}},
                        longer_tables(2),
                        longer_tables(4),
                        longer_tables(8)},
      .make_with = [](const OptionValues& values) { return std::make_unique<Recall>(values); }};
}

}  // namespace longhand::tasks
