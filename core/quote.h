#pragma once

#include <string>
#include <string_view>

namespace longhand {

/// Outside text made fit for a one-line message: in double quotes, control characters and broken
/// UTF-8 written as \xHH, cut after 60 characters.
std::string quote(std::string_view text);  // not "quoted": std has one, and ADL would prefer it

}  // namespace longhand
