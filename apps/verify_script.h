#pragma once

#include <string_view>

namespace longhand::app {

/// verify.py, as `longhand audit` writes it. CMake puts it into the program.
extern const std::string_view verify_script;

}  // namespace longhand::app
