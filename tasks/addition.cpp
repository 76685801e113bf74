#include "tasks/addition.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

class Addition final : public CharacterTask {
 public:
  static constexpr std::int64_t most_digits = 1 << 12, most_operands = 64;

  Addition(const OptionValues& options, Range digits, std::int64_t operands, bool pad)
      : CharacterTask(options,
                      {.characters = "0123456789+=",
                       .instruction = "Add the numbers. All are written from the last digit to the "
                                      "first, and so is the sum.\n",
                       .examples = "210+900=120\n570+860=341"},
                      operands * (digits.most + 2) + digits.most + 2),
        digits_(digits),
        operands_(operands),
        pad_(pad) {}

  /// An exclusive upper bound of the couplings (position ids), which count the digits of each
  /// number from 1. The sum of up to 64 numbers has at most digits_.most + 2 digits, and the line
  /// break after the sum counts as one more digit. So digits_.most + 3 is the largest coupling.
  std::int64_t coupled_positions() const override { return digits_.most + 4; }

 private:
  std::vector<std::int32_t> coupled(std::string_view characters) const override {
    return digits::places(characters, true);
  }
  std::vector<std::int32_t> places_of_digits(std::string_view characters) const override {
    return digits::places(characters, false);
  }

  Written draw(Rng& rng) const override {
    std::vector<std::string> numbers;
    std::size_t width = 0;
    for (std::int64_t i = 0; i < operands_; ++i) {
      numbers.push_back(digits::draw(digits_.draw(rng), rng));
      width = std::max(width, numbers.back().size() + 1);
    }
    Written sample;
    std::string total;
    for (std::string& number : numbers) {
      if (pad_) number = digits::padded(number, width);
      sample.prompt += (sample.prompt.empty() ? "" : "+") + number;
      total = digits::sum(total, number);
    }
    sample.prompt += '=';
    sample.answer = total;
    return sample;
  }

  /// Adds the numbers column by column. The generator of samples uses another method: it adds one
  /// number after another.
  std::string solve(std::string_view prompt, std::string& answer) const override {
    std::vector<std::string> numbers;
    if (prompt.ends_with('=')) {
      prompt.remove_suffix(1);
      numbers = digits::split(prompt, '+', most_digits);
    }
    if (numbers.size() < 2) {
      return text("expected numbers of at most ", most_digits,
                  " digits, separated by \"+\" and followed by \"=\", got ", quote(prompt));
    }
    std::size_t width = 0;
    for (const std::string& number : numbers) width = std::max(width, number.size());
    answer.clear();
    std::size_t over = 0;
    for (std::size_t place = 0; place < width || over > 0; ++place) {
      for (const std::string& number : numbers) {
        if (place < number.size()) over += static_cast<std::size_t>(number[place] - '0');
      }
      answer += static_cast<char>('0' + over % 10);
      over /= 10;
    }
    return {};
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    std::vector<Look> all;
    for (std::size_t i = 0; begin + i < sample.size(); ++i) {
      Look look{begin + i, {}};
      for (std::size_t first = 0; first < begin;) {
        const std::size_t after = sample.find_first_of("+=", first);
        if (first + i < after) look.at.push_back(first + i);
        first = after + 1;
      }
      all.push_back(std::move(look));
    }
    return all;
  }

  Range digits_;
  std::int64_t operands_;
  bool pad_;
};

}  // namespace

TaskKind addition() {
  return character_kind(
      {.name = "addition",
       .summary = "add numbers that are written from the last digit to the first",
       .options = {{"digits", "1-4", "digits per operand, or a range such as 1-4"},
                   {"operands", "2", "number of operands"},
                   {"pad", "1",
                    "1: pad all operands with zeros to one digit more than the longest operand"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood", [](OptionValues& v) { v.set("digits", "5-10"); }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<Addition>(
             values, Range::of(values, "digits", 1, Addition::most_digits - 1),
             values.integer("operands", 2, Addition::most_operands),
             values.choice("pad", {"0", "1"}) == 1);
       }});
}

}  // namespace longhand::tasks
