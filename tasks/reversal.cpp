#include "tasks/reversal.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

class Reversal final : public CharacterTask {
 public:
  static constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  static constexpr std::int64_t longest_string = 1 << 14;

  Reversal(const OptionValues& options, Range length)
      : CharacterTask(
            options,
            {.characters = characters(),
             .instruction = "Write the characters before the equals sign from the last to the "
                            "first.\n",
             .examples = "abc=cba\n7Xq2=2qX7"},
            2 * length.most + 1),
        length_(length) {}

  std::int64_t coupled_positions() const override { return length_.most + 2; }

 private:
  /// Couplings are equal for a character and its copy: they increase up to '=', then decrease to 0
  /// at the end.
  std::vector<std::int32_t> coupled(std::string_view characters) const override {
    std::vector<std::int32_t> all;
    std::int32_t id = 0;
    bool answer = false;
    for (const char c : characters) {
      id = answer ? std::max(0, id - 1) : id + 1;
      answer = answer || c == '=';
      all.push_back(id);
    }
    return all;
  }

  static const std::string& characters() {
    static const std::string all = std::string(letters) + '=';
    return all;
  }

  Written draw(Rng& rng) const override {
    Written sample;
    for (std::int64_t left = length_.draw(rng); left > 0; --left) {
      const char c = letters[rng.below(letters.size())];
      sample.prompt += c;
      sample.answer.insert(sample.answer.begin(), c);
    }
    sample.prompt += '=';
    return sample;
  }

  std::string solve(std::string_view prompt, std::string& answer) const override {
    const std::size_t sign = prompt.find_first_not_of(letters);
    if (sign == 0 || sign == std::string_view::npos || prompt.substr(sign) != "=") {
      return text("expected letters or digits and =, got ", quote(prompt));
    }
    answer.assign(prompt.rbegin() + 1, prompt.rend());
    return {};
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    std::vector<Look> all;
    for (std::size_t i = 0; begin + i < sample.size(); ++i)
      all.push_back({begin + i, {begin - 2 - i}});
    return all;
  }

  Range length_;
};

}  // namespace

TaskKind reversal() {
  return character_kind(
      {.name = "reversal",
       .summary = "reverse a string of characters",
       .options = {{"length", "1-10",
                    "length of the string in characters, or a range such as 1-10"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood", [](OptionValues& v) { v.set("length", "11-50"); }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<Reversal>(
             values, Range::of(values, "length", 1, Reversal::longest_string));
       }});
}

}  // namespace longhand::tasks
