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

/// BOOST_TEST of an Outcome shows what it says.
inline void check(const char* file, std::size_t line, std::string_view condition,
                  const Left<Outcome>& outcome) {
  check(file, line, condition, outcome.value);
}

}  // namespace test

/// What the error says that the action throws; "accepted" where it throws none.
template <class Refused = Error, std::invocable Action>
std::string refusal(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Refused& error) {
    return error.what();
  }
  return "accepted";
}

/// For BOOST_TEST, which shows the text where it has no such part.
inline test::Outcome contains(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  return {found, found ? "" : test::shown(text)};
}

/// The action throws an error that says this, in one line.
inline void expect_refusal(const std::function<void()>& action, std::string_view message) {
  const std::string said = refusal(action);
  BOOST_TEST(contains(said, message));
  BOOST_TEST(said.find('\n') == said.npos);
}

}  // namespace longhand
