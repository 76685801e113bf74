#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand::nn {

/// The names of an enumeration's values, in the order of the values.
template <class E>
inline constexpr std::array<std::string_view, 0> names_of{};

/// An option as it is shown in the help and in config.ini.
struct OptionSpec {
  std::string name, placeholder, help;
  std::string default_value;  // the variable's value when the option was declared, as text
  bool common = false;        // true: the short help, which fits on one screen, shows this option
};

/// An option and the variable that it sets.
struct BoundOption : OptionSpec {
  std::function<std::string()> text;  // returns the variable's value as text
  // Parses a text and sets the variable. Throws an Error if the text is not a valid value.
  std::function<void(std::string_view text)> assign;
};

/// Collects options. A class declares each option in one line next to its members, whose initial
/// values are the defaults:
///   void declare(Options& options) override {
///     options.integer("window", window, 0, 1 << 24, "keys that a head sees; 0: all");
///   }
/// Command-line flags, config.ini and the help are derived from this declaration.
class Options {
 public:
  Options() = default;
  /// Error messages begin with `prefix` and the option's name, as in "training.steps: ...".
  explicit Options(std::string prefix) : prefix_(std::move(prefix)) {}

  template <std::integral Integer>
  BoundOption& integer(std::string_view name, Integer& value, std::int64_t low, std::int64_t high,
                       std::string_view help, std::string_view placeholder = "N") {
    return bind(
        name, value, [](Integer number) { return std::to_string(number); },
        [=, subject = prefix_ + std::string(name)](std::string_view text) {
          return static_cast<Integer>(parse_integer(subject, text, low, high));
        },
        placeholder, help);
  }
  BoundOption& number(std::string_view name, double& value, double low, double high,
                      std::string_view help);
  /// Declares an option whose value is a number or, for no value, the text "none".
  BoundOption& number(std::string_view name, std::optional<double>& value, double low, double high,
                      std::string_view help);
  BoundOption& flag(std::string_view name, bool& value, std::string_view help);
  /// Declares an option whose value is one of the values of an enumeration, or a bool. `names` must
  /// be in the order of these values.
  template <class E>
  BoundOption& choice(std::string_view name, E& value, std::string_view help,
                      std::vector<std::string_view> names = {names_of<E>.begin(),
                                                             names_of<E>.end()},
                      std::string_view placeholder = "NAME") {
    return bind(
        name, value,
        [=](E chosen) { return std::string(names.at(static_cast<std::size_t>(chosen))); },
        [=, subject = prefix_ + std::string(name)](std::string_view text) {
          return static_cast<E>(parse_choice(subject, text, names));
        },
        placeholder, help);
  }
  /// Declares an option whose value is one of `values`. name_of() returns the text of a value.
  template <class E>
  BoundOption& choice_of(std::string_view name, E& value, std::vector<E> values,
                         std::string_view help, std::string_view placeholder = "NAME") {
    std::vector<std::string_view> names;
    for (const E each : values) names.push_back(name_of(each));
    return bind(
        name, value, [](E chosen) { return std::string(name_of(chosen)); },
        [=, subject = prefix_ + std::string(name)](std::string_view text) {
          return values[parse_choice(subject, text, names)];
        },
        placeholder, help);
  }
  /// Declares an option whose value is a text. If `choices` is not empty, the text must be one of
  /// them.
  BoundOption& text(std::string_view name, std::string& value, std::string_view help,
                    std::string_view placeholder, std::vector<std::string_view> choices = {});
  /// Declares an option that sets a variable of any type. `write` converts a value to text, and
  /// `read` converts a text to a value.
  template <class T, class Write, class Read>
  BoundOption& bind(std::string_view name, T& value, Write write, Read read,
                    std::string_view placeholder, std::string_view help) {
    OptionSpec spec{.name = std::string(name),
                    .placeholder = std::string(placeholder),
                    .help = std::string(help),
                    .default_value = write(value)};
    return all_.emplace_back(
        BoundOption{std::move(spec), [&value, write] { return write(value); },
                    [&value, read](std::string_view given) { value = read(given); }});
  }

  std::span<const BoundOption> all() const { return all_; }
  const BoundOption* find(std::string_view name) const;  // null if there is no such option

 private:
  static std::int64_t parse_integer(std::string_view subject, std::string_view text,
                                    std::int64_t low, std::int64_t high);
  static std::size_t parse_choice(std::string_view subject, std::string_view text,
                                  std::span<const std::string_view> names);

  std::string prefix_;
  std::vector<BoundOption> all_;
};

/// The shortest text that gives the same number when it is read.
std::string shortest(double value);
/// The names as a list: "a, b or c".
std::string listed(std::span<const std::string_view> names);

}  // namespace longhand::nn
