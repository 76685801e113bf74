#include "nn/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

/// Parses the whole text as a number. Throws an Error if the text is not a number from `low` to
/// `high`.
template <class Number>
Number parsed(std::string_view name, std::string_view text, Number low, Number high,
              std::string_view what) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  LONGHAND_CHECK(error == std::errc() && stop == end && number >= low && number <= high, name,
                 ": expected ", what, " from ", low, " to ", high, ", got ", quote(text));
  return number;
}

/// Writes the default value of an option in its shortest form: 1e-3 instead of 0.001 or 1e-03.
std::string as_written(double value) {
  if (value == 0 || std::abs(value) >= 0.01) return shortest(value);
  char digits[32];
  std::string text(
      digits,
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr);
  if (const auto zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

}  // namespace

std::int64_t Options::parse_integer(std::string_view subject, std::string_view text,
                                    std::int64_t low, std::int64_t high) {
  return parsed(subject, text, low, high, "an integer");
}

std::size_t Options::parse_choice(std::string_view subject, std::string_view text,
                                  std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  LONGHAND_CHECK(found != names.end(), subject, ": expected ", listed(names), ", got ",
                 quote(text));
  return static_cast<std::size_t>(found - names.begin());
}

BoundOption& Options::number(std::string_view name, double& value, double low, double high,
                             std::string_view help) {
  BoundOption& option = bind(
      name, value, shortest,
      [=, subject = prefix_ + std::string(name)](std::string_view text) {
        return parsed(subject, text, low, high, "a number");
      },
      "X", help);
  option.default_value = as_written(value);
  return option;
}

BoundOption& Options::number(std::string_view name, std::optional<double>& value, double low,
                             double high, std::string_view help) {
  return bind(
      name, value,
      [](const std::optional<double>& number) { return number ? shortest(*number) : "none"; },
      [=, subject = prefix_ + std::string(name)](std::string_view text) {
        return text == "none" ? std::nullopt
                              : std::optional(parsed(subject, text, low, high, "none or a number"));
      },
      "X", help);
}

BoundOption& Options::flag(std::string_view name, bool& value, std::string_view help) {
  BoundOption& option = integer(name, value, 0, 1, help);
  option.placeholder = "0|1";
  return option;
}

BoundOption& Options::text(std::string_view name, std::string& value, std::string_view help,
                           std::string_view placeholder, std::vector<std::string_view> choices) {
  return bind(
      name, value, [](const std::string& text) { return text; },
      [=, subject = prefix_ + std::string(name)](std::string_view text) {
        if (!choices.empty()) parse_choice(subject, text, choices);
        return std::string(text);
      },
      placeholder, help);
}

const BoundOption* Options::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &BoundOption::name);
  return found == all_.end() ? nullptr : &*found;
}

std::string shortest(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string listed(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

}  // namespace longhand::nn
