#include <algorithm>
#include <charconv>

#include "apps/command.h"

namespace longhand::app {

std::string shown_flag(std::string_view name) {
  std::string flag = text("--", name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::vector<CliFlag> join(std::vector<CliFlag> first, const std::vector<CliFlag>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<CliFlag> show_default(std::vector<CliFlag> flags, std::string_view name,
                                  std::string_view shown) {
  CliFlag& flag = *std::ranges::find(flags, name, &CliFlag::name);
  if (flag.default_value.empty()) flag.help.erase(flag.help.rfind(" ("));
  flag.default_value.clear();
  flag.help += text("; default: ", shown);
  return flags;
}

CliFlag rarely(CliFlag option) {
  option.rare = true;
  return option;
}

CliFlag json_option() { return {"json", "", "print one JSON object and nothing else"}; }

std::int64_t parse_integer(std::string_view subject, std::string_view text, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    wrong_usage(subject, ": expected an integer from ", low, " to ", high, ", got '", text, "'");
  }
  return value;
}

double parse_number(std::string_view subject, std::string_view text, double low, double high) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(number >= low && number <= high)) {
    wrong_usage(subject, ": expected a number from ", low, " to ", high, ", got '", text, "'");
  }
  return number;
}

}  // namespace longhand::app
