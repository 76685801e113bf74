#pragma once

#include <string_view>

namespace longhand::app {

/// verify.py and the formulas.py that it reads, as `longhand audit` writes them. CMake puts them
/// into the program.
extern const std::string_view verify_script, verify_formulas;

}  // namespace longhand::app
