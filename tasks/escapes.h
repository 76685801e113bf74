#pragma once

#include <string>
#include <string_view>

#include "tasks/options.h"

namespace longhand::tasks {

/// A text in an option: \n, \t, \r, \\ and \xHH stand for what they do in C, \s for a space.
std::string unescaped(const OptionValues& options, std::string_view name);

}  // namespace longhand::tasks
