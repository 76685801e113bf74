#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "tests/check.h"

namespace longhand {
namespace test {

/// BOOST_TEST calls this for a condition of type Outcome. If the condition is false, the message in
/// the Outcome is shown.
inline void check(const char* file, std::size_t line, std::string_view condition,
                  const Left<Outcome>& outcome) {
  check(file, line, condition, outcome.value);
}

}  // namespace test

/// The message of the error that the action throws; "accepted" if it throws no error.
template <class Refused = Error, std::invocable Action>
std::string refusal(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Refused& error) {
    return error.what();
  }
  return "accepted";
}

/// True if the text contains the part. If it is false, BOOST_TEST shows the whole text.
inline test::Outcome contains(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  return {found, found ? "" : test::shown(text)};
}

/// Checks that the action throws a one-line error that contains this message.
inline void expect_refusal(const std::function<void()>& action, std::string_view message) {
  const std::string said = refusal(action);
  BOOST_TEST(contains(said, message));
  BOOST_TEST(said.find('\n') == said.npos);
}

}  // namespace longhand
