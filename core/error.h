#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace longhand {

/// The one exception type. Its message is a single line that says what was expected and what came.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Joins its arguments with operator<<.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}

}  // namespace longhand

/// Throws Error with the joined message unless the condition holds. Active in every build.
#define LONGHAND_CHECK(condition, ...) \
  do {                                 \
    if (!(condition)) [[unlikely]]     \
      ::longhand::fail(__VA_ARGS__);   \
  } while (false)
