#pragma once

#include <string>
#include <string_view>
#include "tests/check.h"

namespace longhand {

/// The text with the first occurrence of `what` replaced by `with`. There must be an occurrence.
inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  BOOST_REQUIRE_MESSAGE(at != text.npos, what << " is not there");
  return text.replace(at, what.size(), with);
}

}  // namespace longhand
