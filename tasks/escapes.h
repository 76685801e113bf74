#pragma once

#include <string>
#include <string_view>

#include "tasks/options.h"

namespace longhand::tasks {

/// The value of a text option. \n, \t, \r, \\ and \xHH have the same meaning as in C; \s is a
/// space.
std::string unescaped(const OptionValues& options, std::string_view name);

}  // namespace longhand::tasks
