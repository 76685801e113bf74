#pragma once

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

/// Replaces Boost.Test's BOOST_TEST(condition). Like Boost's macro, ours reports both sides of a
/// failed comparison, but it compiles much faster: Boost's macro builds a type for every
/// expression, and compiling the tests took longer than compiling the library. BOOST_TEST with
/// further arguments is still Boost's macro.
namespace longhand::test {

template <class T>
[[gnu::noinline, gnu::cold]] std::string shown(const T& value) {
  if constexpr (requires(std::ostream & out) { out << value; }) {
    std::ostringstream out;
    out.precision(std::numeric_limits<double>::max_digits10);
    out << std::boolalpha << value;
    return out.str();
  } else {
    return "(not printable)";
  }
}

struct Outcome {
  bool passed;
  std::string sides;  // the two sides of a failed comparison

  explicit operator bool() const { return passed; }
};

/// Returns the value to compare. For a C string this is the text, not the address.
template <class T>
decltype(auto) compared(const T& value) {
  if constexpr (std::is_convertible_v<const T&, const char*> && !std::is_null_pointer_v<T>) {
    return std::string_view(value);
  } else {
    return (value);
  }
}

template <class T>
struct Left {
  const T& value;

  explicit operator bool() const { return static_cast<bool>(value); }

  template <class U>
  [[gnu::noinline, gnu::cold]] Outcome failed(std::string_view sign, const U& right) const {
    return {false, shown(value).append(sign) + shown(right)};
  }

#pragma GCC diagnostic push
/// Allows comparing an unsigned count with a literal.
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wconversion"
#define LONGHAND_COMPARISON(sign)                                               \
  template <class U>                                                            \
  Outcome operator sign(const U& right) const {                                 \
    return compared(value) sign compared(right) ? Outcome{true, {}}             \
                                                : failed(" " #sign " ", right); \
  }
  LONGHAND_COMPARISON(==)
  LONGHAND_COMPARISON(!=)
  LONGHAND_COMPARISON(<)
  LONGHAND_COMPARISON(<=)
  LONGHAND_COMPARISON(>)
  LONGHAND_COMPARISON(>=)
#undef LONGHAND_COMPARISON
#pragma GCC diagnostic pop
};

/// `Sides() << a == b` is parsed as `(Sides() << a) == b`, which is `Left(a) == b`, because <<
/// binds more strongly than comparisons.
struct Sides {
  template <class T>
  Left<T> operator<<(const T& value) const {
    return {value};
  }
};

void report(const char* file, std::size_t line, std::string_view condition, bool passed,
            std::string_view sides = {});

inline void check(const char* file, std::size_t line, std::string_view condition,
                  const Outcome& outcome) {
  report(file, line, condition, outcome.passed, outcome.sides);
}

template <class T>
void check(const char* file, std::size_t line, std::string_view condition, const T& passed) {
  report(file, line, condition, static_cast<bool>(passed));
}

}  // namespace longhand::test

#define LONGHAND_TEST_CONDITION(level, condition) \
  ::longhand::test::check(__FILE__, __LINE__, #condition, ::longhand::test::Sides() << condition)

#undef BOOST_TEST
#define BOOST_TEST(...)                                                                   \
  BOOST_TEST_INVOKE_IF_N_ARGS(2, LONGHAND_TEST_CONDITION, BOOST_TEST_TOOL_UNIV_EX, CHECK, \
                              __VA_ARGS__)
