#pragma once

#include <string>
#include <string_view>

namespace longhand::app {

/// Whether lines on this descriptor may be coloured and written over: it is a terminal, not a dumb
/// one, and nobody asked for plain text (NO_COLOR).
bool is_rich_terminal(int descriptor);

/// The text in bold, or in bold red, where `rich`; else as it is.
std::string bold(std::string_view text, bool rich);
std::string alarming(std::string_view text, bool rich);

}  // namespace longhand::app
