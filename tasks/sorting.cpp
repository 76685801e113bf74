#include "tasks/sorting.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/length_mix.h"

namespace longhand::tasks {
namespace {

using Numbers = std::vector<std::int32_t>;

enum class Kind : std::size_t { sort, successor, count, fill };
constexpr std::array<std::string_view, 4> kind_names{"sort", "successor", "count", "fill"};

constexpr std::int64_t most_numbers = 1000;
// The hint `successor` requires an input in which a number has a successor. Random inputs are drawn
// until one has such a number, but no more than most_tries inputs.
constexpr int most_tries = 1000;

WordVocabulary make_vocabulary(std::int64_t largest) {
  std::vector<std::string> texts;
  for (std::int64_t k = 0; k <= largest; ++k) texts.push_back(std::to_string(k));
  texts.emplace_back("⊥");
  texts.emplace_back("PAD");
  return WordVocabulary(std::move(texts), " ");
}

std::uint32_t bound(std::int64_t size) { return static_cast<std::uint32_t>(size); }

/// The Levenshtein distance: the minimum number of insertions, deletions and replacements that turn
/// one sequence into the other.
std::int64_t edit_distance(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  if (std::ranges::equal(a, b)) return 0;
  // Edit distances between a prefix of `a`, which the loop extends, and every prefix of `b`.
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// A parsed prompt: the numbers before the first mark ⊥, and the numbers after it.
struct Prompt {
  Numbers input, after;
};

class Sorting final : public Task {
 public:
  explicit Sorting(const OptionValues& options)
      : largest_(options.integer("numbers", 2, most_numbers)),
        lengths_(options),
        repeat_(options.integer("repeat", 0, LengthMix::most)),
        repetition_(options.number("repetition", 0, 1)),
        vocabulary_(make_vocabulary(largest_)),
        mark_(static_cast<std::int32_t>(largest_) + 1),
        copies_follow_(options.choice("successor", {"greater", "copy"}) == 1) {
    const std::int64_t length = lengths_.longest();
    LONGHAND_CHECK(repeat_ == 0 || !lengths_.is_mix(),
                   "task sorting: option repeat: expected 0, because option \"length\" is 0, got ",
                   repeat_);
    LONGHAND_CHECK(repeat_ == 0 || (repeat_ <= length && length / repeat_ <= largest_),
                   "task sorting: option repeat: expected length / repeat between 1 and ", largest_,
                   ", got length ", length, " and repeat ", repeat_);
    const std::size_t hint = options.choice("hint", {"none", "successor", "count", "fill", "all"});
    if (hint == 4) {
      kinds_ = {Kind::sort, Kind::successor, Kind::count, Kind::fill};
    } else if (hint > 0) {
      kinds_.push_back(static_cast<Kind>(hint));
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int heads() const override { return static_cast<int>(kinds_.size()); }
  std::string_view head_name(int head) const override {
    return kind_names[static_cast<std::size_t>(kind(head))];
  }
  std::int64_t longest() const override { return 2 * lengths_.longest() + 1; }
  std::string_view main_metric() const override { return "sequences"; }

  Sample sample(Rng& rng, int head) const override {
    Sample sample;
    Numbers answer;
    switch (kind(head)) {
      case Kind::sort:
        answer = sort(rng, sample.tokens);
        break;
      case Kind::successor:
        answer = successor(rng, sample.tokens);
        break;
      case Kind::count:
        answer = count(rng, sample.tokens);
        break;
      case Kind::fill:
        answer = fill(rng, sample.tokens);
        break;
    }
    sample.head = head;
    const std::size_t given = sample.tokens.size();
    sample.tokens.insert(sample.tokens.end(), answer.begin(), answer.end());
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    for (std::size_t i = 0; i < answer.size(); ++i) {
      sample.asked.push_back(static_cast<std::int32_t>(given - 1 + i));
      sample.targets[given - 1 + i] = answer[i];
    }
    return sample;
  }

  /// Also reports `edit-distance`: the edit distance between the right and the predicted answer,
  /// averaged over samples.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
    const auto answer = std::span(sample.tokens).last(said.size());
    tally.add_value("edit-distance", static_cast<double>(edit_distance(answer, said)));
  }

  /// To predict a number of the answer, a model must attend to all occurrences of the number in the
  /// input. For the task `count`, it must attend to the whole input.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    const auto input =
        static_cast<std::int32_t>(std::ranges::find(sample.tokens, mark_) - sample.tokens.begin());
    std::vector<ReferenceRow> rows;
    for (const std::int32_t output : sample.asked) {
      ReferenceRow row{.row = output, .columns = {}};
      const std::int32_t wanted = sample.targets[static_cast<std::size_t>(output)];
      for (std::int32_t at = 0; at < input; ++at) {
        if (kind(sample.head) == Kind::count ||
            sample.tokens[static_cast<std::size_t>(at)] == wanted) {
          row.columns.push_back(at);
        }
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// The answer as text, which starts with a space.
  std::string answer(std::string_view prompt, int head) const override {
    Prompt read;
    const std::string wrong = read_prompt(prompt, kind(head), read);
    LONGHAND_CHECK(wrong.empty(), "sorting: ", wrong);
    return ' ' + vocabulary_.decode(solve(kind(head), read));
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override {
    Prompt read;
    std::string wrong = read_prompt(prompt, kind(head), read);
    if (!wrong.empty()) return wrong;
    const Numbers right = solve(kind(head), read);
    Numbers said;
    wrong = vocabulary_.encode(answer, said);
    if (!wrong.empty()) return wrong;
    for (std::size_t i = 0; i < std::min(said.size(), right.size()); ++i) {
      if (said[i] == right[i]) continue;
      return text("number ", i + 1, ": expected ", right[i], ", got ", vocabulary_.text(said[i]));
    }
    if (said.size() == right.size()) return std::nullopt;
    return text("expected ", right.size(), " numbers, got ", said.size());
  }

 private:
  Kind kind(int head) const { return kinds_.at(static_cast<std::size_t>(head)); }

  std::int32_t draw_number(Rng& rng) const {
    return 1 + static_cast<std::int32_t>(rng.below(bound(largest_)));
  }

  Numbers draw_distinct(Rng& rng, std::int64_t count) const {
    Numbers all(static_cast<std::size_t>(largest_));
    std::iota(all.begin(), all.end(), 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::swap(all[i], all[i + rng.below(static_cast<std::uint32_t>(all.size() - i))]);
    }
    all.resize(static_cast<std::size_t>(count));
    return all;
  }

  Numbers draw_input(Rng& rng) const {
    const std::int64_t length = lengths_.draw(rng);
    Numbers input;
    if (repeat_ > 0) {
      for (const std::int32_t number : draw_distinct(rng, length / repeat_)) {
        input.insert(input.end(), static_cast<std::size_t>(repeat_), number);
      }
      while (static_cast<std::int64_t>(input.size()) < length) input.push_back(draw_number(rng));
      rng.shuffle(input.begin(), input.end());
      return input;
    }
    if (lengths_.is_mix() && rng.chance(repetition_)) {
      const Numbers few =
          draw_distinct(rng, std::min(largest_, std::max<std::int64_t>(1, length / 2)));
      for (std::int64_t i = 0; i < length; ++i) {
        input.push_back(few[rng.below(bound(std::ssize(few)))]);
      }
      return input;
    }
    for (std::int64_t i = 0; i < length; ++i) input.push_back(draw_number(rng));
    return input;
  }

  // Each of the next functions generates samples: it writes a prompt to `tokens` and returns the
  // answer.

  Numbers sort(Rng& rng, Numbers& tokens) const {
    tokens = draw_input(rng);
    Numbers answer = tokens;
    std::ranges::sort(answer);
    tokens.push_back(mark_);
    return answer;
  }

  /// Helper task `successor`: the prompt ends with a random number of the input that has a
  /// successor (follower()). The answer is this successor.
  Numbers successor(Rng& rng, Numbers& tokens) const {
    for (int tries = 0;; ++tries) {
      LONGHAND_CHECK(
          tries < most_tries,
          "task sorting: option hint: expected inputs with at least two different numbers, because "
          "the successor hint asks for the next greater number, got no such input in ",
          most_tries, " tries");
      tokens = draw_input(rng);
      if (std::ranges::any_of(tokens, [&](std::int32_t a) { return follower(tokens, a) != 0; })) {
        break;
      }
    }
    std::int32_t before = 0, after = 0;
    while (after == 0) {
      before = tokens[rng.below(bound(std::ssize(tokens)))];
      after = follower(tokens, before);
    }
    tokens.push_back(mark_);
    tokens.push_back(before);
    return {after};
  }

  /// The successor of a number: the next greater number of the input. If copies_follow_ is true,
  /// the successor of a number that occurs several times is the number itself. 0: there is no
  /// successor.
  std::int32_t follower(std::span<const std::int32_t> input, std::int32_t number) const {
    if (copies_follow_ && std::ranges::count(input, number) > 1) return number;
    std::int32_t least = 0;
    for (const std::int32_t other : input) {
      if (other > number && (least == 0 || other < least)) least = other;
    }
    return least;
  }

  /// Helper task `count`: at first, each of two numbers occurs length / 2 times, rounded down. With
  /// probability 1/2, 1 to 5 occurrences of one of them are then removed, but at least one remains.
  Numbers count(Rng& rng, Numbers& tokens) const {
    const std::int64_t each = lengths_.draw(rng) / 2;
    const Numbers both = draw_distinct(rng, 2);
    const std::int64_t most_fewer = std::min<std::int64_t>(5, each - 1);
    std::int64_t fewer = 0;
    if (rng.below(2) == 1 && most_fewer > 0) fewer = 1 + rng.below(bound(most_fewer));
    const std::size_t rarer = rng.below(2);
    tokens.assign(static_cast<std::size_t>(each), both[1 - rarer]);
    tokens.insert(tokens.end(), static_cast<std::size_t>(each - fewer), both[rarer]);
    rng.shuffle(tokens.begin(), tokens.end());
    tokens.push_back(mark_);
    return {fewer > 0 ? both[rarer] : std::ranges::min(both)};
  }

  /// Helper task `fill`: the first part of the prompt repeats a number. The count is drawn
  /// uniformly from 1 to length / 2. The second part repeats the same number, but less often: its
  /// count is drawn uniformly from 0 to one less than the count of the first part.
  Numbers fill(Rng& rng, Numbers& tokens) const {
    const std::int64_t times = 1 + rng.below(bound(lengths_.draw(rng) / 2));
    const std::int64_t begun = rng.below(bound(times));
    const std::int32_t number = draw_number(rng);
    tokens.assign(static_cast<std::size_t>(times), number);
    tokens.push_back(mark_);
    tokens.insert(tokens.end(), static_cast<std::size_t>(begun), number);
    tokens.push_back(mark_);
    return Numbers(static_cast<std::size_t>(times - begun), number);
  }

  /// Parses a prompt. Returns a description of what is wrong, or an empty text if nothing is wrong.
  std::string read_prompt(std::string_view text, Kind kind, Prompt& prompt) const {
    Numbers tokens;
    std::string wrong = vocabulary_.encode(text, tokens);
    if (!wrong.empty()) return wrong;
    const auto marks = std::ranges::count(tokens, mark_);
    const bool ends_with_mark = !tokens.empty() && tokens.back() == mark_;
    if (marks != (kind == Kind::fill ? 2 : 1) || ends_with_mark == (kind == Kind::successor)) {
      constexpr std::array<std::string_view, 4> forms{"a b c ⊥", "a b c ⊥ a", "a a b ⊥",
                                                      "a a a ⊥ a ⊥"};
      return longhand::text("expected numbers in the form ", forms[static_cast<std::size_t>(kind)],
                            ", got ", quote(text));
    }
    const auto mark = std::ranges::find(tokens, mark_);
    prompt.input.assign(tokens.begin(), mark);
    prompt.after.assign(mark + 1, tokens.end() - (kind == Kind::fill ? 1 : 0));
    for (const Numbers* numbers : {&prompt.input, &prompt.after}) {
      for (const std::int32_t number : *numbers) {
        if (number >= 1 && number <= largest_) continue;
        return longhand::text("expected numbers from 1 to ", largest_, ", got ",
                              quote(vocabulary_.text(number)));
      }
    }
    if (prompt.input.empty()) return "expected numbers before ⊥, got none";
    return what_is_missing(kind, prompt);
  }

  std::string what_is_missing(Kind kind, const Prompt& prompt) const {
    const Numbers& input = prompt.input;
    if (kind == Kind::successor) {
      if (prompt.after.size() != 1) {
        return text("expected one number after ⊥, got ", prompt.after.size());
      }
      const std::int32_t before = prompt.after[0];
      if (std::ranges::find(input, before) == input.end()) {
        return text("expected a number of the input after ⊥, got ", before);
      }
      if (follower(input, before) == 0) return text(before, " has no successor");
    }
    std::size_t kinds = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const auto earlier = std::span(input).first(i);
      kinds += std::ranges::find(earlier, input[i]) == earlier.end();
    }
    if (kind == Kind::count && kinds != 2) {
      return text("expected two different numbers to count, got ", kinds);
    }
    if (kind == Kind::fill) {
      if (kinds != 1) return text("expected one number to repeat, got ", kinds);
      if (prompt.after.size() >= input.size() ||
          std::ranges::count(prompt.after, input[0]) != std::ssize(prompt.after)) {
        return "expected only the same number between the two ⊥, fewer times than before the first "
               "⊥";
      }
    }
    return {};
  }

  /// Computes the right answer from the number of times that each number occurs in the input. The
  /// generators of samples use other methods, such as sorting.
  Numbers solve(Kind kind, const Prompt& prompt) const {
    std::vector<std::size_t> times(static_cast<std::size_t>(largest_) + 1);
    for (const std::int32_t number : prompt.input) ++times[static_cast<std::size_t>(number)];
    Numbers answer;
    std::size_t rarest = 0;
    for (std::size_t number = 1; number < times.size(); ++number) {
      if (times[number] == 0) continue;
      const auto said = static_cast<std::int32_t>(number);
      switch (kind) {
        case Kind::sort:
          answer.insert(answer.end(), times[number], said);
          break;
        case Kind::successor:
          if (answer.empty() &&
              (said > prompt.after[0] ||
               (copies_follow_ && said == prompt.after[0] && times[number] > 1))) {
            answer = {said};
          }
          break;
        case Kind::count:
          if (rarest == 0 || times[number] < times[rarest]) rarest = number;
          answer = {static_cast<std::int32_t>(rarest)};
          break;
        case Kind::fill:
          answer.assign(times[number] - prompt.after.size(), said);
          break;
      }
    }
    return answer;
  }

  std::int64_t largest_;
  LengthMix lengths_;
  std::int64_t repeat_;
  double repetition_;
  WordVocabulary vocabulary_;
  std::int32_t mark_;
  // If true, a number that occurs several times in the input is its own successor.
  bool copies_follow_;
  std::vector<Kind> kinds_{Kind::sort};  // kind of task of each output head
};

}  // namespace

TaskKind sorting() {
  std::vector<TaskOption> options{
      {"hint", "none", "helper tasks: none, successor, count, fill or all"},
      {"successor", "greater",
       "answer of the helper task successor for a number that occurs several times: greater (the "
       "next greater number) or copy (the number itself)"},
      {"repetition", "0",
       "training mix: share of inputs whose n numbers are drawn from only n / 2 distinct numbers"},
      {"repeat", "0",
       "with --task.length n: inputs consist of n / X distinct numbers, X times each; the rest is "
       "random; 0: off"},
      {"numbers", "100", "largest number; the smallest is 1"}};
  std::ranges::copy(LengthMix::options(5, 20), std::back_inserter(options));
  return {
      .name = "sorting",
      .summary = "sort numbers, with helper tasks on additional output heads",
      .options = std::move(options),
      .distributions = {{"train", [](OptionValues&) {}},
                        LengthMix::exactly(50),
                        LengthMix::exactly(100)},
      .make_with = [](const OptionValues& values) { return std::make_unique<Sorting>(values); }};
}

}  // namespace longhand::tasks
