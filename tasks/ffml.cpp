#include "tasks/ffml.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/character_task.h"

namespace longhand::tasks {
namespace {

class Ffml final : public CharacterTask {
 public:
  static constexpr std::int64_t most_commands = 1 << 16, most_registers = 10;

  Ffml(const OptionValues& options, Range commands, std::int64_t registers, bool flips, bool reads)
      : CharacterTask(options,
                      {.characters = "0123456789wrif",
                       .instruction =
                           "A command is a letter, a register and a bit: w writes the bit into the "
                           "register, f flips the register, i is ignored, r reads it. Registers "
                           "begin at 0. Give the bit of the last read.\n",
                       .examples = "w11f10i01r10\nw01i11f11r01"},
                      3 * commands.most),
        commands_(commands),
        registers_(registers),
        letters_(text("wi", flips ? "f" : "", reads ? "r" : "")) {}

 private:
  Written draw(Rng& rng) const override {
    Written sample;
    std::array<char, most_registers> bits;
    bits.fill('0');
    const auto registers = static_cast<std::uint32_t>(registers_);
    for (std::int64_t left = commands_.draw(rng); left > 1; --left) {
      const char command = letters_[rng.below(static_cast<std::uint32_t>(letters_.size()))];
      const std::uint32_t at = rng.below(registers);
      const char drawn = rng.below(2) == 0 ? '0' : '1';
      const char bit = command == 'r' ? bits[at] : drawn;
      sample.prompt += {command, static_cast<char>('0' + at), bit};
      if (command == 'w') bits[at] = bit;
      if (command == 'f') bits[at] = bits[at] == '0' ? '1' : '0';
    }
    const std::uint32_t at = rng.below(registers);
    sample.prompt += {'r', static_cast<char>('0' + at)};
    sample.answer = bits[at];
    return sample;
  }

  std::string solve(std::string_view prompt, std::string& answer) const override {
    std::array<bool, most_registers> set{};
    if (prompt.size() % 3 != 2) {
      return text(
          "expected commands of three characters, and a last read command without a bit, got ",
          quote(prompt));
    }
    for (std::size_t place = 0; place < prompt.size(); place += 3) {
      const std::string where = text("command ", place / 3 + 1, ": ");
      const char command = prompt[place], at = prompt[place + 1];
      const bool is_last = place + 3 > prompt.size();
      if (std::string_view("wrif").find(command) == std::string_view::npos) {
        return where + "expected \"w\", \"r\", \"i\" or \"f\", got " +
               quote(prompt.substr(place, 1));
      }
      if (at < '0' || at > '9') {
        return where + "expected a register from 0 to 9, got " + quote(prompt.substr(place + 1, 1));
      }
      bool& bit = set[static_cast<std::size_t>(at - '0')];
      if (is_last) {
        if (command != 'r') return where + "expected the last command to be a read";
        answer = bit ? "1" : "0";
        return {};
      }
      const char said = prompt[place + 2];
      if (said != '0' && said != '1') {
        return where + "expected the bit 0 or 1, got " + quote(prompt.substr(place + 2, 1));
      }
      if (command == 'r' && bit != (said == '1')) {
        return where + "expected " + (bit ? "1" : "0") + " to be read, got " + said;
      }
      if (command == 'w') bit = said == '1';
      if (command == 'f') bit = !bit;
    }
    return "expected a prompt that ends with a read command";
  }

  std::size_t answer_in(std::string_view sample) const override {
    return sample.empty() ? std::string_view::npos : sample.size() - 1;
  }

  std::vector<Look> looks(std::string_view sample, std::size_t begin) const override {
    const char at = sample[begin - 1];
    Look look{begin, {begin - 1}};
    for (std::size_t place = begin - 2; place >= 3;) {
      place -= 3;
      if (sample[place + 1] != at) continue;
      const bool writes = sample[place] == 'w';
      if (writes) look.at.push_back(place + 2);
      if (writes || sample[place] == 'f') look.at.insert(look.at.end(), {place + 1, place});
      if (writes) break;
    }
    std::ranges::reverse(look.at);
    return {look};
  }

  Range commands_;
  std::int64_t registers_;
  std::string letters_;  // possible letters of all commands but the last one
};

}  // namespace

TaskKind ffml() {
  return character_kind(
      {.name = "ffml",
       .summary = "read the bit of a register after writes, flips and ignored commands",
       .options = {{"commands", "10",
                    "number of commands, including the last read, or a range such as 5-10"},
                   {"registers", "2", "number of registers, each of one bit"},
                   {"flips", "1", "1: some commands flip a register"},
                   {"reads", "0",
                    "1: some commands before the last one are reads, followed by their bits"}},
       .distributions = {{"train", [](OptionValues&) {}},
                         {"ood", [](OptionValues& v) { v.set("commands", "11-100"); }}},
       .make_with = [](const OptionValues& values) {
         return std::make_unique<Ffml>(
             values, Range::of(values, "commands", 1, Ffml::most_commands),
             values.integer("registers", 1, Ffml::most_registers),
             values.choice("flips", {"0", "1"}) == 1, values.choice("reads", {"0", "1"}) == 1);
       }});
}

}  // namespace longhand::tasks
