#pragma once

#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace longhand {

/// The library's only exception type. The message is one line that states what was expected and
/// what was found.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A part of an error message: any value with an operator<<. One function, which is not a template,
/// joins the parts. This keeps the compiled code of each LONGHAND_CHECK small.
class MessagePart {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers list the parts of a message
  MessagePart(const char* text) : value_(text), print_(print_text) {}
  template <class T>
  MessagePart(const T& value)
      : value_(&value), print_([](std::ostream& out, const void* address) {
          out << *static_cast<const T*>(address);
        }) {}
  // NOLINTEND(google-explicit-constructor)

 private:
  friend std::string message_of(std::initializer_list<MessagePart> parts);
  static void print_text(std::ostream& out, const void* text);

  const void* value_;
  void (*print_)(std::ostream& out, const void* value);
};

std::string message_of(std::initializer_list<MessagePart> parts);
[[noreturn]] void fail_with(std::initializer_list<MessagePart> parts);

/// Prints all arguments with operator<<, one after another, and returns the text.
template <class... Pieces>
std::string text(const Pieces&... parts) {
  return message_of({parts...});
}

template <class... Pieces>
[[noreturn]] void fail(const Pieces&... parts) {
  fail_with({parts...});
}

}  // namespace longhand

/// If the condition is false, throws an Error. Its message consists of the other arguments, one
/// after another. The check is active in every build type.
#define LONGHAND_CHECK(condition, ...)      \
  do {                                      \
    if (!(condition)) [[unlikely]]          \
      ::longhand::fail_with({__VA_ARGS__}); \
  } while (false)
