#pragma once

#include <string_view>

namespace longhand::app::html {

/// The text of hover.js, which CMake embeds in the program.
extern const std::string_view hover_script;

}  // namespace longhand::app::html
