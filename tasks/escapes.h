#pragma once

#include <string>
#include <string_view>

#include "tasks/options.h"

namespace longhand::tasks {

/// The value of a text option with its escapes replaced. The escapes \n, \t, \r, \\ and \xHH have
/// the same meaning as in C, and \s is a space.
std::string unescaped(const OptionValues& options, std::string_view name);
/// Writes a text as the value of a text option: spaces, backslashes and control characters become
/// escapes, which unescaped() replaces.
std::string escaped(std::string_view text);

}  // namespace longhand::tasks
