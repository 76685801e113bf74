#include "tasks/increment.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/length_mix.h"

namespace longhand::tasks {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t mark = 10, carry_mark = 11;  // tokens ⊥ and ↑, which follow the digits

WordVocabulary make_vocabulary() {
  std::vector<std::string> texts;
  for (int digit = 0; digit < 10; ++digit) texts.push_back(std::to_string(digit));
  // The vocabulary of Awasthi and Gupta 2023 has 14 tokens, but samples contain only 12 of them.
  for (const char* text : {"⊥", "↑", "PAD", "UNUSED"}) texts.emplace_back(text);
  return WordVocabulary(std::move(texts), " ");
}

class Increment final : public Task {
 public:
  explicit Increment(const OptionValues& options)
      : hint_(options.choice("hint", {"none", "carry"}) == 1),
        lengths_(options),
        nines_(options.number("nines", 0, 1)),
        vocabulary_(make_vocabulary()) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int heads() const override { return hint_ ? 2 : 1; }
  std::string_view head_name(int head) const override { return head == 0 ? "increment" : "carry"; }
  /// A sample has n digits, the mark ⊥, and up to n + 1 digits of the sum. In the helper task
  /// `carry`, a carry mark ↑ and a carry follow each digit of the sum.
  std::int64_t longest() const override {
    const std::int64_t digits = lengths_.longest();
    return digits + 1 + (hint_ ? 3 : 1) * (digits + 1);
  }
  std::string_view main_metric() const override { return "sequences"; }
  std::int64_t coupled_positions() const override { return lengths_.longest() + 2; }

  /// Couplings are the position ids of tokens. They increase up to the mark ⊥ and decrease after
  /// it, so that digits of the same place have equal couplings. In the helper task, a mark ↑ and
  /// one carry follow each digit of the sum. Both have the coupling of this digit.
  Tokens couplings(std::span<const std::int32_t> tokens) const override {
    Tokens all;
    std::int32_t id = 0;
    bool answer = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool of_carry = tokens[i] == carry_mark || (i > 0 && tokens[i - 1] == carry_mark);
      if (!of_carry) id = answer ? std::max(0, id - 1) : id + 1;
      answer = answer || tokens[i] == mark;
      all.push_back(id);
    }
    return all;
  }

  Sample sample(Rng& rng, int head) const override {
    Sample sample{.tokens = draw_number(rng), .targets = {}};
    sample.head = head;
    const std::size_t digits = sample.tokens.size();
    sample.tokens.push_back(mark);
    std::int32_t carry = 1;
    for (std::size_t i = 0; i < digits || carry > 0; ++i) {
      const std::int32_t sum = carry + (i < digits ? sample.tokens[digits - 1 - i] : 0);
      carry = sum / 10;
      sample.tokens.push_back(sum % 10);
      if (head == 1) sample.tokens.insert(sample.tokens.end(), {carry_mark, carry});
    }
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    for (std::size_t i = digits; i + 1 < sample.tokens.size(); ++i) {
      sample.asked.push_back(static_cast<std::int32_t>(i));
      sample.targets[i] = sample.tokens[i + 1];
    }
    return sample;
  }

  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
  }

  /// To predict a digit of the sum, a model must attend to the number's digits of the same place
  /// and of all lower places. With carries, a digit and its carry depend on the number's digit of
  /// the same place and on the carry into this place. A carry mark depends on the preceding digit.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    const std::int32_t digits = sample.asked.front();
    std::vector<ReferenceRow> rows;
    for (const std::int32_t output : sample.asked) {
      const std::int32_t step = sample.head == 1 ? 3 : 1;
      // The place of the predicted digit or, for a carry, of the preceding digit. The last digit of
      // a number has place 0.
      const std::int32_t place = (output - digits) / step;
      ReferenceRow row{.row = output, .columns = {}};
      if (sample.head == 1 && (output - digits) % step == 1) {
        row.columns = {output};
      } else if (sample.head == 1) {
        if (place < digits) row.columns.push_back(digits - 1 - place);
        if (place > 0) row.columns.push_back(digits + 3 * place);
      } else {
        for (std::int32_t i = std::max(0, digits - 1 - place); i < digits; ++i) {
          row.columns.push_back(i);
        }
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// The answer as text, which starts with a space.
  std::string answer(std::string_view prompt, int head) const override {
    Tokens digits;
    const std::string wrong = read_prompt(prompt, digits);
    LONGHAND_CHECK(wrong.empty(), "increment: ", wrong);
    return ' ' + vocabulary_.decode(solve(digits, head));
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int head) const override {
    Tokens digits, said;
    std::string wrong = read_prompt(prompt, digits);
    if (wrong.empty()) wrong = vocabulary_.encode(answer, said);
    if (!wrong.empty()) return wrong;
    const Tokens right = solve(digits, head);
    for (std::size_t i = 0; i < std::min(said.size(), right.size()); ++i) {
      if (said[i] == right[i]) continue;
      return text("token ", i + 1, ": expected ", vocabulary_.text(right[i]), ", got ",
                  vocabulary_.text(said[i]));
    }
    if (said.size() == right.size()) return std::nullopt;
    return text("expected ", right.size(), " tokens, got ", said.size());
  }

 private:
  /// Draws the digits of a number. If short and long numbers are mixed, as in training, some
  /// numbers end in nines. The number of these nines is drawn uniformly from 1 to the number of
  /// digits.
  Tokens draw_number(Rng& rng) const {
    const std::int64_t length = lengths_.draw(rng);
    Tokens digits{1 + static_cast<std::int32_t>(rng.below(9))};
    for (std::int64_t i = 1; i < length; ++i) {
      digits.push_back(static_cast<std::int32_t>(rng.below(10)));
    }
    if (lengths_.is_mix() && rng.chance(nines_)) {
      const std::int64_t nines = 1 + rng.below(static_cast<std::uint32_t>(length));
      std::fill(digits.end() - nines, digits.end(), 9);
    }
    return digits;
  }

  /// Parses a prompt. Returns a description of what is wrong, or an empty text if nothing is wrong.
  std::string read_prompt(std::string_view text, Tokens& digits) const {
    std::string wrong = vocabulary_.encode(text, digits);
    if (!wrong.empty()) return wrong;
    const bool marked = !digits.empty() && digits.back() == mark;
    if (marked) digits.pop_back();
    if (!marked || digits.empty() || std::ranges::any_of(digits, [](int d) { return d > 9; })) {
      return longhand::text("expected digits and ⊥, got ", quote(text));
    }
    return digits.front() == 0 ? "expected a first digit from 1 to 9, got 0" : std::string();
  }

  /// Adds one to a number: replaces the nines at its end by zeros and increases the digit before
  /// them by one. The generator of samples uses another method: it carries digit by digit.
  static Tokens solve(const Tokens& digits, int head) {
    const auto last = std::find_if(digits.rbegin(), digits.rend(), [](int d) { return d != 9; });
    const auto nines = static_cast<std::size_t>(last - digits.rbegin());
    Tokens sum(nines, 0);
    sum.push_back(last == digits.rend() ? 1 : *last + 1);
    if (last != digits.rend()) sum.insert(sum.end(), last + 1, digits.rend());
    if (head == 0) return sum;
    Tokens with_carries;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      with_carries.insert(with_carries.end(), {sum[i], carry_mark, i < nines ? 1 : 0});
    }
    return with_carries;
  }

  bool hint_;
  LengthMix lengths_;
  double nines_;
  WordVocabulary vocabulary_;
};

}  // namespace

TaskKind increment() {
  std::vector<TaskOption> options{
      {"hint", "none", "helper task: none or carry; carry: also predict all carries"},
      {"nines", "0.1", "training mix: share of numbers whose last digits are replaced by nines"}};
  std::ranges::copy(LengthMix::options(4, 10), std::back_inserter(options));
  return {
      .name = "increment",
      .summary = "add one to a number and write the result from the last digit to the first",
      .options = std::move(options),
      .distributions = {{"train", [](OptionValues&) {}},
                        LengthMix::exactly(11),
                        LengthMix::exactly(15),
                        LengthMix::exactly(20)},
      .make_with = [](const OptionValues& values) { return std::make_unique<Increment>(values); }};
}

}  // namespace longhand::tasks
