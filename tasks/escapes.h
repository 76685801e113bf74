#pragma once

#include <string>
#include <string_view>

#include "tasks/options.h"

namespace longhand::tasks {

/// The text of an option: \n, \t, \r, \\ and \xHH have their meaning in C, \s is a space.
std::string unescaped(const OptionValues& options, std::string_view name);

}  // namespace longhand::tasks
