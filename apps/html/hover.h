#pragma once

#include <string_view>

namespace longhand::app::html {

/// hover.js, as a page carries it. CMake writes it into the program.
extern const std::string_view hover_script;

}  // namespace longhand::app::html
