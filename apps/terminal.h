#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhand::app {

/// True if lines written to this descriptor may be coloured and overwritten: it is a terminal other
/// than "dumb", and NO_COLOR is not set.
bool is_rich_terminal(int descriptor);

/// Number of columns that tables written to this descriptor may use: the variable COLUMNS if set,
/// otherwise the width of the terminal; 0 if there is no limit.
std::size_t table_columns(int descriptor);

/// The text in bold, or in bold red, if `rich`; otherwise unchanged.
std::string bold(std::string_view text, bool rich);
std::string alarming(std::string_view text, bool rich);

}  // namespace longhand::app
