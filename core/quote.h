#pragma once

#include <string>
#include <string_view>

namespace longhand {

/// Outside text made fit for a message of one line: control characters and broken UTF-8 are written
/// as \xHH; characters that are not seen or change the direction of what follows (Unicode's
/// Default_Ignorable_Code_Point, C1 controls, bidirectional marks, line separators) as \u{HHHH}.
std::string printable(std::string_view text);

/// Each line of a text made printable; the line breaks stay.
std::string printable_lines(std::string_view text);

/// printable() in double quotes, cut after 60 characters of it.
std::string quote(std::string_view text);  // not "quoted": std has one, and ADL would prefer it

}  // namespace longhand
