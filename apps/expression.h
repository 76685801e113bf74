#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace longhand::app {

/// A formula in the usual notation, such as "x^2 * sin(2*y) - exp(-x)/3": numbers, + - * / ^ ( ),
/// the constants pi and e, functions (see functions()), and variables, which are all other names. ^
/// is right-associative and binds stronger than a sign: -x^2 is -(x^2).
class Expression {
 public:
  /// Throws an Error that names the place where parsing fails.
  explicit Expression(std::string_view text);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  const std::string& text() const { return text_; }
  const std::set<std::string>& variables() const { return variables_; }
  /// Returns NaN or infinity if there is no value.
  double operator()(const std::map<std::string, double>& values) const;

  /// "abs, acos, ...", for help.
  static std::string functions();

  static constexpr std::size_t longest = 4096;  // characters
  static constexpr int deepest = 100;           // nesting of brackets and signs

  struct Node;

 private:
  std::string text_;
  std::unique_ptr<Node> root_;
  std::set<std::string> variables_;
};

}  // namespace longhand::app
