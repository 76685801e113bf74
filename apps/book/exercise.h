#pragma once

#include <string>
#include <string_view>

namespace longhand::app::book {

/// A derivative that the reader must find. It is in a block of docs/exercises.md between
/// ```exercise and ```:
///
///     x*z by x
///     right: z
///     wrong: x
struct Exercise {
  // by: the variable of the derivative. The default is the only variable of the function.
  std::string function, by;
  std::string right, wrong;  // the right answer, and a likely mistake that a check must detect
};
Exercise parse_exercise(std::string_view text);

/// Checks a derivative with difference quotients, as `longhand gradcheck --expression` does.
bool is_derivative(const Exercise& exercise, std::string_view typed);

/// HTML with the command that checks an answer. It also contains the right answer, which is hidden
/// until the reader clicks on the word "answer".
std::string exercise_html(const Exercise& exercise);

}  // namespace longhand::app::book
