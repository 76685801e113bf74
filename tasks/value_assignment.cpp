#include "tasks/value_assignment.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

class ValueAssignment final : public CharacterTask {
 public:
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  /// Characters that may be values.
  static constexpr std::string_view symbols =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  static constexpr std::int64_t longest_string = 1 << 14;

  ValueAssignment(const OptionValues& options, Range pairs, Range length, std::string values)
      : CharacterTask(options,
                      {.characters = characters(),
                       .instruction = "The pairs before the space are a table. Translate each "
                                      "letter after the space by it.\n",
                       .examples = "A1B0 ABBA=1001\nc0D1 Dc=10"},
                      2 * pairs.most + 2 * length.most + 2),
        pairs_(pairs),
        length_(length),
        values_(std::move(values)) {}

 private:
  static const std::string& characters() {
    static const std::string all = std::string(symbols) + " =";
    return all;
  }

  Written draw(Rng& rng) const override {
    std::string names(letters), values = values_;
    rng.shuffle(names.begin(), names.end());
    names.resize(static_cast<std::size_t>(pairs_.draw(rng)));
    // If there are enough values, no two letters have the same value.
    const bool enough = values.size() >= names.size();
    rng.shuffle(values.begin(), values.end());
    Written sample;
    std::map<char, char> table;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const char value =
          enough ? values[i] : values[rng.below(static_cast<std::uint32_t>(values.size()))];
      sample.prompt += {names[i], value};
      table[names[i]] = value;
    }
    sample.prompt += ' ';
    for (std::int64_t left = length_.draw(rng); left > 0; --left) {
      const char name = names[rng.below(static_cast<std::uint32_t>(names.size()))];
      sample.prompt += name;
      sample.answer += table[name];
    }
    sample.prompt += '=';
    return sample;
  }

  std::string solve(std::string_view prompt, std::string& answer) const override {
    const std::size_t space = prompt.find(' ');
    const bool parted = space != std::string_view::npos && space > 0 && space % 2 == 0 &&
                        prompt.size() > space + 2 && prompt.ends_with('=');
    if (!parted) {
      return text("expected a table of letters and values, a space, letters and =, got ",
                  quote(prompt));
    }
    const std::string_view table = prompt.substr(0, space);
    const std::string_view string = prompt.substr(space + 1, prompt.size() - space - 2);
    for (std::size_t i = 0; i < table.size(); i += 2) {
      if (letters.find(table[i]) == std::string_view::npos) {
        return text("the table: expected a letter, got ", quote(table.substr(i, 1)));
      }
      if (symbols.find(table[i + 1]) == std::string_view::npos) {
        return text("the table: expected a letter or a digit, got ", quote(table.substr(i + 1, 1)));
      }
      if (find(table, table[i]) != i) {
        return text("the table: expected different letters, got ", quote(table.substr(i, 1)),
                    " twice");
      }
    }
    answer.clear();
    for (std::size_t i = 0; i < string.size(); ++i) {
      const std::size_t pair = find(table, string[i]);
      if (pair == std::string_view::npos) {
        return text("expected letters of the table, got ", quote(string.substr(i, 1)));
      }
      answer += table[pair + 1];
    }
    return {};
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    const std::size_t string = sample.find(' ') + 1;
    const std::string_view table = sample.substr(0, string - 1);
    std::vector<Look> all;
    for (std::size_t i = 0; begin + i < sample.size(); ++i) {
      const std::size_t pair = find(table, sample[string + i]);
      all.push_back({begin + i, {pair, pair + 1, string + i}});
    }
    return all;
  }

  /// Index in the table at which the pair with this letter starts.
  static std::size_t find(std::string_view table, char letter) {
    for (std::size_t i = 0; i < table.size(); i += 2) {
      if (table[i] == letter) return i;
    }
    return std::string_view::npos;
  }

  Range pairs_, length_;
  std::string values_;
};

std::string read_values(const OptionValues& options) {
  const std::string& values = options.text("values");
  std::string once = values;
  std::ranges::sort(once);
  LONGHAND_CHECK(
      !values.empty() && std::ranges::adjacent_find(once) == once.end() &&
          values.find_first_not_of(ValueAssignment::symbols) == std::string::npos,
      "task value-assignment: option values: expected different letters and digits, got ",
      quote(values));
  return values;
}

}  // namespace

TaskKind value_assignment() {
  return character_kind(
      {.name = "value-assignment",
       .summary = "translate a string with a table of letters and values",
       .options = {{"pairs", "5", "number of pairs in the table, or a range such as 5-10"},
                   {"length", "5", "length of the string in letters, or a range such as 5-10"},
                   {"values", "01", "letters and digits that are used as values"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood",
                          [](OptionValues& v) {
                            v.set("pairs", "10-50");
                            v.set("length", "10-20");
                          }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<ValueAssignment>(
             values, Range::of(values, "pairs", 1, std::ssize(ValueAssignment::letters)),
             Range::of(values, "length", 1, ValueAssignment::longest_string), read_values(values));
       }});
}

}  // namespace longhand::tasks
