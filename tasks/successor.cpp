#include "tasks/successor.h"

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

/// The next larger number. Numbers are written with the leading digit first.
std::string next(std::string_view number) {
  std::string after(number);
  std::size_t place = after.size();
  while (place > 0 && after[place - 1] == '9') after[--place] = '0';
  if (place == 0) return '1' + after;
  ++after[place - 1];
  return after;
}

class Successor final : public CharacterTask {
 public:
  static constexpr std::int64_t largest = 1'000'000'000, most_numbers = 1 << 12;
  static constexpr std::size_t most_digits = 256;

  Successor(const OptionValues& options, Range start, Range numbers)
      : CharacterTask(options,
                      {.characters = "0123456789 ",
                       .ended = false,
                       .instruction = "Go on counting.\n",
                       .examples = "7 8 9 \n41 42 "},
                      numbers.most * std::ssize(std::to_string(start.most + numbers.most) + ' ')),
        start_(start),
        numbers_(numbers) {}

 private:
  Written draw(Rng& rng) const override {
    std::int64_t number = start_.draw(rng);
    Written sample{.prompt = std::to_string(number) + ' '};
    for (std::int64_t left = numbers_.draw(rng); left > 1; --left) {
      sample.answer += std::to_string(++number) + ' ';
    }
    return sample;
  }

  /// The shortest right answer is one successor. judge() also accepts longer lists of successors.
  std::string solve(std::string_view prompt, std::string& answer) const override {
    const std::string_view number = prompt.substr(0, prompt.empty() ? 0 : prompt.size() - 1);
    const bool sound = prompt.ends_with(' ') && !number.empty() && number.size() <= most_digits &&
                       number.find_first_not_of("0123456789") == std::string_view::npos &&
                       (number[0] != '0' || number.size() == 1);
    if (!sound) {
      return text("expected a number of at most ", most_digits, " digits and a space, got ",
                  quote(prompt));
    }
    answer = next(number) + ' ';
    return {};
  }

  std::string judge(std::string_view, std::string_view answer,
                    std::string_view right) const override {
    std::string number(right.substr(0, right.size() - 1));
    if (answer.empty()) return "expected " + number + " and a space, got nothing";
    for (std::size_t place = 0; place < answer.size(); number = next(number)) {
      const std::string_view said = answer.substr(place, number.size() + 1);
      if (!said.starts_with(number) || !said.ends_with(' ')) {
        return "expected " + quote(number + ' ') + ", got " + quote(said);
      }
      place += said.size();
    }
    return {};
  }

  std::size_t answer_in(std::string_view sample) const override {
    const std::size_t space = sample.find(' ');
    return space == std::string_view::npos ? space : space + 1;
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    std::vector<Look> all;
    // Indices at which the previous and the current number start.
    std::size_t before = 0, first = begin;
    for (std::size_t place = begin; place + 1 < sample.size(); ++place) {
      Look look{place, {}};
      for (std::size_t at = before; at < place; ++at) look.at.push_back(at);
      all.push_back(std::move(look));
      if (sample[place] == ' ') {
        before = first;
        first = place + 1;
      }
    }
    return all;
  }

  Range start_, numbers_;
};

}  // namespace

TaskKind successor() {
  return character_kind(
      {.name = "successor",
       .summary = "count up from a number",
       .options = {{"start", "1-90", "first number, or a range such as 1-90"},
                   {"numbers", "2-4",
                    "length of the list, including the first number, or a range such as 2-4"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood",
                          [](OptionValues& v) {
                            v.set("start", "100-900");
                            v.set("numbers", "5-6");
                          }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<Successor>(
             values, Range::of(values, "start", 0, Successor::largest),
             Range::of(values, "numbers", 2, Successor::most_numbers));
       }});
}

}  // namespace longhand::tasks
