#include "tasks/multiplication.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

/// The product of a number and a digit, multiplied by 10^shift.
std::string times(std::string_view number, char digit, std::size_t shift) {
  if (digit == '0') return "0";
  std::string row(shift, '0');
  int carry = 0;
  for (const char c : number) {
    carry += (c - '0') * (digit - '0');
    row += static_cast<char>('0' + carry % 10);
    carry /= 10;
  }
  if (carry > 0) row += static_cast<char>('0' + carry);
  return digits::trimmed(row);
}

class Multiplication final : public CharacterTask {
 public:
  static constexpr std::int64_t most_digits = 256;

  Multiplication(const OptionValues& options, Range digits, bool pad)
      : CharacterTask(
            options,
            {.characters = "0123456789*+=",
             .instruction = "Multiply the numbers: first the product of the first number with each "
                            "digit of the second, then their sum. All are written from the last "
                            "digit to the first.\n",
             .examples = "70*60=24+00=24\n2100*3000=6300+0000+0000+0000=6300"},
            // Let n = digits.most, the maximum number of digits of a factor. A padded number has 2
            // n digits and is followed by one other character. A sample consists of 2 n + 3 such
            // numbers: two factors, 2 n partial products and the product.
            (2 * digits.most + 1) * (2 * digits.most + 3)),
        digits_(digits),
        pad_(pad) {}

  std::int64_t coupled_positions() const override { return 2 * digits_.most + 2; }

 private:
  std::vector<std::int32_t> coupled(std::string_view characters) const override {
    return digits::places(characters, true);
  }
  std::vector<std::int32_t> places_of_digits(std::string_view characters) const override {
    return digits::places(characters, false);
  }

  Written draw(Rng& rng) const override {
    std::string first = digits::draw(digits_.draw(rng), rng);
    std::string second = digits::draw(digits_.draw(rng), rng);
    if (digits::less(first, second)) std::swap(first, second);
    const std::size_t width = pad_ ? 2 * first.size() : 0;
    Written sample{.prompt =
                       digits::padded(first, width) + '*' + digits::padded(second, width) + '='};
    std::string total = "0";
    for (std::size_t i = 0; i < std::max(width, second.size()); ++i) {
      const std::string row = i < second.size() ? times(first, second[i], i) : "0";
      sample.answer += (i == 0 ? "" : "+") + digits::padded(row, width);
      total = digits::trimmed(digits::sum(total, row));
    }
    sample.answer += '=' + digits::padded(total, width);
    return sample;
  }

  /// Computes each partial product by repeated addition, and the product column by column. The
  /// generator of samples uses another method: it multiplies digit by digit and adds whole rows.
  std::string solve(std::string_view prompt, std::string& answer) const override {
    std::vector<std::string> numbers;
    if (prompt.ends_with('=')) {
      numbers = digits::split(prompt.substr(0, prompt.size() - 1), '*', 2 * most_digits);
    }
    if (numbers.size() != 2) {
      return text("expected two numbers of at most ", 2 * most_digits,
                  " digits, separated by \"*\" and followed by \"=\", got ", quote(prompt));
    }
    const std::string first = digits::trimmed(numbers[0]), second = digits::trimmed(numbers[1]);
    if (digits::less(first, second)) return "expected the larger number first";
    const std::size_t width = width_of(numbers[0], numbers[1]);
    if (width == 0 && (first != numbers[0] || second != numbers[1])) {
      return text("expected both numbers padded with zeros to one width of at least ",
                  2 * first.size(), " digits, or no padding, got ", quote(prompt));
    }
    answer.clear();
    for (std::size_t i = 0; i < std::max(width, second.size()); ++i) {
      const std::string shifted = std::string(i, '0') + first;
      std::string row = "0";
      for (char n = '0'; i < second.size() && n < second[i]; ++n) row = digits::sum(row, shifted);
      answer += (i == 0 ? "" : "+") + digits::padded(digits::trimmed(row), width);
    }
    std::string product;
    std::size_t over = 0;
    for (std::size_t place = 0; place + 1 < first.size() + second.size() || over > 0; ++place) {
      for (std::size_t i = 0; i <= place && i < first.size(); ++i) {
        if (place - i >= second.size()) continue;
        over += static_cast<std::size_t>((first[i] - '0') * (second[place - i] - '0'));
      }
      product += static_cast<char>('0' + over % 10);
      over /= 10;
    }
    answer += '=' + digits::padded(digits::trimmed(product), width);
    return {};
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    const std::size_t second = sample.find('*') + 1;
    const std::size_t rows_end = sample.find('=', begin);
    std::vector<Look> all;
    std::size_t row = 0, digit = 0;
    for (std::size_t place = begin; place < rows_end; ++place, ++digit) {
      if (sample[place] == '+') {
        ++row;
        digit = static_cast<std::size_t>(-1);  // the loop's increment makes `digit` 0
        continue;
      }
      Look look{place, {}};
      if (digit + 1 < second) look.at.push_back(digit);
      if (second + row + 1 < begin) look.at.push_back(second + row);
      all.push_back(std::move(look));
    }
    return all;
  }

  /// Number of digits to which all numbers of a prompt are padded. 0: numbers are not padded.
  static std::size_t width_of(const std::string& first, const std::string& second) {
    const bool padded =
        first.size() == second.size() && first.size() >= 2 * digits::trimmed(first).size();
    return padded ? first.size() : 0;
  }

  Range digits_;
  bool pad_;
};

}  // namespace

TaskKind multiplication() {
  return character_kind(
      {.name = "multiplication",
       .summary = "multiply two numbers and write all partial products",
       .options =
           {{"digits", "1-3", "digits per factor, or a range such as 1-3"},
            {"pad", "1",
             "1: pad all numbers with zeros to twice the number of digits of the larger factor"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood", [](OptionValues& v) { v.set("digits", "4-6"); }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<Multiplication>(
             values, Range::of(values, "digits", 1, Multiplication::most_digits),
             values.choice("pad", {"0", "1"}) == 1);
       }});
}

}  // namespace longhand::tasks
