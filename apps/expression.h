#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace longhand::app {

/// A formula in the usual notation, such as "x^2 * sin(2*y) - exp(-x)/3": numbers, + - * / ^ ( ),
/// the constants pi and e, and the functions listed by functions(). All other names are variables.
/// ^ is right-associative and binds more strongly than a sign: -x^2 is -(x^2).
class Expression {
 public:
  /// Throws an Error that quotes the text at which parsing fails.
  explicit Expression(std::string_view text);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  const std::string& text() const { return text_; }
  const std::set<std::string>& variables() const { return variables_; }
  /// Evaluates the formula. Returns NaN or infinity where it is undefined.
  double operator()(const std::map<std::string, double>& values) const;

  /// The names of all functions, "abs, acos, ...", for the help.
  static std::string functions();

  static constexpr std::size_t longest = 4096;  // maximum number of characters
  static constexpr int deepest = 100;           // maximum nesting depth of brackets and signs

  struct Node;

 private:
  std::string text_;
  std::unique_ptr<Node> root_;
  std::set<std::string> variables_;
};

}  // namespace longhand::app
