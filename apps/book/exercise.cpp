#include "apps/book/exercise.h"

#include "apps/derivative_check.h"
#include "apps/html/page.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app::book {
namespace {

constexpr double low = -3, high = 3;  // the default range of `gradcheck --expression`
constexpr std::uint64_t points_seed = 1;

/// The text after the first `key`, up to the end of the line.
std::string line_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  const std::size_t begin = at + key.size();
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

Exercise parse_exercise(std::string_view text) {
  Exercise exercise{.function = std::string(text.substr(0, text.find('\n'))),
                    .by = {},
                    .right = line_after(text, "\nright: "),
                    .wrong = line_after(text, "\nwrong: ")};
  constexpr std::string_view between = " by ";
  if (const std::size_t at = exercise.function.rfind(between); at != std::string::npos) {
    exercise.by = exercise.function.substr(at + between.size());
    exercise.function.resize(at);
  }
  LONGHAND_CHECK(!exercise.right.empty() && !exercise.wrong.empty(), "exercise ",
                 quote(exercise.function),
                 ": expected lines that begin with \"right:\" and \"wrong:\"");
  const Expression f(exercise.function);
  if (exercise.by.empty() && f.variables().size() == 1) exercise.by = *f.variables().begin();
  LONGHAND_CHECK(f.variables().contains(exercise.by), "exercise ", quote(exercise.function),
                 ": expected \"FUNCTION by VARIABLE\", with a variable of the function");
  return exercise;
}

bool is_derivative(const Exercise& exercise, std::string_view typed) {
  return check_derivative(Expression(exercise.function), exercise.by, Expression(typed), low, high,
                          points_seed)
      .right();
}

std::string exercise_html(const Exercise& exercise) {
  const bool single = Expression(exercise.function).variables().size() == 1;
  const std::string command = text("longhand gradcheck --expression '", exercise.function,
                                   "' --derivative '...'", single ? "" : " --by " + exercise.by);
  // A script of the book adds a field in which the reader types an answer. The script checks the
  // answer at points whose variables are between `low` and `high`.
  return text("<div class=\"exercise\" data-function=\"", html::escape(exercise.function),
              "\" data-by=\"", html::escape(exercise.by), "\" data-from=\"", low, "\" data-to=\"",
              high, "\">\n", html::code(command), "<details><summary>answer</summary>",
              html::code(exercise.right), "</details></div>\n");
}

}  // namespace longhand::app::book
