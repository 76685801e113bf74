#pragma once

#include <string>
#include <string_view>

namespace longhand {

/// Makes untrusted text safe for a one-line message. Control characters and invalid UTF-8 are
/// written as \xHH. Invisible characters and characters that change the direction of text
/// (Unicode's Default_Ignorable_Code_Point, C1 controls, bidirectional marks, line separators) are
/// written as \u{HHHH}.
std::string printable(std::string_view text);

/// Applies printable() to each line and keeps the line breaks.
std::string printable_lines(std::string_view text);

/// The text in double quotes, made safe by printable() and cut after 60 characters. The function is
/// not called quoted(), because argument-dependent lookup would prefer std::quoted.
std::string quote(std::string_view text);

}  // namespace longhand
