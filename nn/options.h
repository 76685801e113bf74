#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::nn {

/// The names of an enumeration's values, in order.
template <class E>
inline constexpr std::array<std::string_view, 0> names_of{};

/// An option of a component, bound to the member variable that it sets.
struct Option {
  std::string_view name, placeholder, meaning;
  std::function<std::string()> text;  // Returns the member's value as text.
  // Sets the member. Throws an Error if the text is not a valid value.
  std::function<void(std::string_view text)> assign;
};

/// Collects the options of a component. The component declares each option in one line. The initial
/// values of its member variables are the defaults:
///   void declare(Options& options) override {
///     options.integer("window", window, 0, 1 << 24, "keys that a head sees; 0: all");
///   }
/// Command-line flags, config.ini and the help are derived from this declaration.
class Options {
 public:
  void integer(std::string_view name, std::int64_t& value, std::int64_t low, std::int64_t high,
               std::string_view meaning);
  void number(std::string_view name, double& value, double low, double high,
              std::string_view meaning);
  /// An option whose value is a number or "none".
  void number(std::string_view name, std::optional<double>& value, double low, double high,
              std::string_view meaning);
  void flag(std::string_view name, bool& value, std::string_view meaning);
  template <class E>
  void choice(std::string_view name, E& value, std::string_view meaning) {
    add_choice(
        name, names_of<E>, [&value] { return static_cast<std::size_t>(value); },
        [&value](std::size_t index) { value = static_cast<E>(index); }, meaning);
  }

  std::span<const Option> all() const { return all_; }
  const Option* find(std::string_view name) const;  // null if there is no such option

 private:
  void add_choice(std::string_view name, std::span<const std::string_view> names,
                  std::function<std::size_t()> get, std::function<void(std::size_t)> set,
                  std::string_view meaning);

  std::vector<Option> all_;
};

/// The shortest text that is parsed to the same number.
std::string shortest(double value);
/// The names as a list: "a, b or c".
std::string listed(std::span<const std::string_view> names);

}  // namespace longhand::nn
