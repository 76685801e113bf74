#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/quote.h"

/// Checks what every fuzz target requires: any bytes are either accepted, or refused by an Error
/// whose message is a short line of printable text that begins with the input's name.
namespace longhand::fuzz {

inline const std::string source = "input";

inline void require(bool condition, std::string_view what) {
  if (condition) return;
  std::cerr << "broken promise: " << what << '\n';
  std::abort();
}

/// Calls `body`. If it throws an Error, checks the Error's message, which must start with
/// `beginning`, and returns false.
template <class Body>
bool done_or_refused(Body body, std::string_view beginning = source) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (!message.starts_with(beginning)) std::cerr << message << '\n';
    require(message.starts_with(beginning), "a message begins with the input's name");
    require(message == printable(message), "a message is one line of printable text");
    require(message.size() < 1000, "a message is short");
    return false;
  }
}

}  // namespace longhand::fuzz
