#pragma once

#include <string>
#include <string_view>

namespace longhand {

/// Makes untrusted text fit for a one-line message. Control characters and invalid UTF-8 are
/// written as \xHH. Invisible characters and those that change the direction of text (Unicode's
/// Default_Ignorable_Code_Point, C1 controls, bidirectional marks, line separators) are written as
/// \u{HHHH}.
std::string printable(std::string_view text);

/// Applies printable() to each line; line breaks stay.
std::string printable_lines(std::string_view text);

/// printable() in double quotes, cut after 60 characters.
std::string quote(std::string_view text);  // not "quoted": std has one, and ADL would prefer it

}  // namespace longhand
