#include "nn/options.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

/// Parses the whole text as a number. Throws an Error that states what was expected.
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

}  // namespace

void Options::integer(std::string_view name, std::int64_t& value, std::int64_t low,
                      std::int64_t high, std::string_view meaning) {
  all_.push_back({name, "N", meaning, [&value] { return std::to_string(value); },
                  [&value, name, low, high](std::string_view text) {
                    value = parsed(name, text, low, high, "an integer");
                  }});
}

void Options::number(std::string_view name, double& value, double low, double high,
                     std::string_view meaning) {
  all_.push_back({name, "X", meaning, [&value] { return shortest(value); },
                  [&value, name, low, high](std::string_view text) {
                    value = parsed(name, text, low, high, "a number");
                  }});
}

void Options::number(std::string_view name, std::optional<double>& value, double low, double high,
                     std::string_view meaning) {
  all_.push_back({name, "X", meaning, [&value] { return value ? shortest(*value) : "none"; },
                  [&value, name, low, high](std::string_view text) {
                    value.reset();
                    if (text != "none") value = parsed(name, text, low, high, "none or a number");
                  }});
}

void Options::flag(std::string_view name, bool& value, std::string_view meaning) {
  all_.push_back({name, "0|1", meaning, [&value] { return std::string(value ? "1" : "0"); },
                  [&value, name](std::string_view text) {
                    value = parsed<std::int64_t>(name, text, 0, 1, "an integer") == 1;
                  }});
}

void Options::add_choice(std::string_view name, std::span<const std::string_view> names,
                         std::function<std::size_t()> get, std::function<void(std::size_t)> set,
                         std::string_view meaning) {
  all_.push_back({name, "NAME", meaning,
                  [names, get = std::move(get)] { return std::string(names[get()]); },
                  [names, name, set = std::move(set)](std::string_view text) {
                    const auto found = std::ranges::find(names, text);
                    LONGHAND_CHECK(found != names.end(), name, ": expected ", listed(names),
                                   ", got ", quote(text));
                    set(static_cast<std::size_t>(found - names.begin()));
                  }});
}

const Option* Options::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Option::name);
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
